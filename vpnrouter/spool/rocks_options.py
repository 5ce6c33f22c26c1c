"""How RocksDB is set up: bounded memory, few threads, no growing logs, nothing lost silently."""

from __future__ import annotations

from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    ReadOptions,
)

from vpnrouter import limits

BLOB_BYTES: Final = 4_096
"""Values from this size on are kept apart from the sorted files, so that merging those does not copy the
bodies of waiting messages again and again."""

_BLOB_FILE_BYTES: Final = 67_108_864
_TABLE_FILE_BYTES: Final = 33_554_432
_MANIFEST_BYTES: Final = 16_777_216
_INFO_LOG_BYTES: Final = 1_048_576
_INFO_LOGS: Final = 2


def options(torn: bool = False) -> Options:
    """Options for opening a store; `torn` cuts the write-ahead log off where it becomes unreadable.

    Without it only an end that is too short is cut off: what a power cut leaves of a write that nobody
    was told of. Anything else that cannot be read is an error.
    """
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.set_wal_recovery_mode(
        DBRecoveryMode.point_in_time() if torn else DBRecoveryMode.tolerate_corrupted_tail_records()
    )
    table = BlockBasedOptions()
    table.set_block_cache(Cache(limits.SPOOL_CACHE_BYTES))
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    table.set_block_size(16_384)
    table.set_format_version(5)
    made.set_block_based_table_factory(table)
    made.set_write_buffer_size(limits.SPOOL_WRITE_BUFFER_BYTES)
    made.set_max_write_buffer_number(2)
    made.set_max_total_wal_size(limits.SPOOL_WAL_BYTES)
    made.set_target_file_size_base(_TABLE_FILE_BYTES)
    made.set_max_background_jobs(2)
    made.set_max_open_files(limits.SPOOL_OPEN_FILES)
    made.set_max_file_opening_threads(1)
    made.set_compression_type(DBCompressionType.lz4())
    made.set_enable_blob_files(True)
    made.set_min_blob_size(BLOB_BYTES)
    made.set_blob_file_size(_BLOB_FILE_BYTES)
    made.set_enable_blob_gc(True)
    made.set_max_manifest_file_size(_MANIFEST_BYTES)
    made.set_keep_log_file_num(_INFO_LOGS)
    made.set_max_log_file_size(_INFO_LOG_BYTES)
    made.set_stats_dump_period_sec(0)
    made.set_stats_persist_period_sec(0)
    return made


def prefix_only(prefix: bytes) -> ReadOptions:
    """A scan that ends with the last key that begins with `prefix`."""
    made = ReadOptions()
    kept = prefix.rstrip(b"\xff")
    if kept:
        made.set_iterate_upper_bound(kept[:-1] + bytes([kept[-1] + 1]))
    made.set_readahead_size(1_048_576)
    return made
