"""Checks what no single model of a configuration can check."""

from __future__ import annotations

from vpnrouter.config.checks.message_vpns import check_trace
from vpnrouter.config.document_values import variables
from vpnrouter.config.parse import Document
from vpnrouter.config.problem import Problem
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.settings.kinds import KINDS, loaded


def check_config(
    config: RouterConfig, document: Document, file_document: Document | None = None
) -> list[Problem]:
    """Return all problems of a configuration whose parts are sound by themselves.

    `document` is what `config` was made from. `file_document` is the file's own document where the two
    differ because unsound parts were dropped.
    """
    problems = ProblemList(document, file_document or document)
    checks = [kind for kind in KINDS if kind.check]
    for kind in checks:
        if not kind.is_checked_in_vpn:
            loaded(kind.check)(problems, config)
    for written in variables(document.data):
        problems.warning(
            written,
            "is taken as it is written, and looks like a variable: write {env: NAME} or {file: PATH}",
        )
    _check_guaranteed_msging(problems, config)
    check_trace(problems, config)
    for name in config.msg_vpns:
        for kind in checks:
            if kind.is_checked_in_vpn:
                loaded(kind.check)(problems, config, name)
    return problems.problems


def check_users(problems: ProblemList, config: RouterConfig) -> None:
    """Check that the message VPNs exist that users are limited to."""
    for name, user in config.management.users.items():
        for index, msg_vpn in enumerate(user.msg_vpns or ()):
            if not problems.is_configured(("msg_vpns", msg_vpn)):
                path = ("management", "users", name, "msg_vpns", index)
                problems.error(path, f"there is no message VPN {msg_vpn}")


def _check_guaranteed_msging(problems: ProblemList, config: RouterConfig) -> None:
    """Report what needs a spool where there is none, and quotas beyond the router's."""
    whole = config.guaranteed_msging
    for name, vpn in config.msg_vpns.items():
        path = ("msg_vpns", name)
        if whole.enabled:
            quota = (*path, "max_msg_spool_usage")
            if vpn.max_msg_spool_usage > whole.max_msg_spool_usage and problems.is_configured(
                quota
            ):
                problems.warning(
                    quota,
                    f"{vpn.max_msg_spool_usage} MB is more than the router's"
                    f" {whole.max_msg_spool_usage} MB (guaranteed_msging)",
                )
            continue
        for key in ("queues", "topic_endpoints", "replay_logs"):
            if getattr(vpn, key):
                problems.key_warning(
                    (*path, key), "not served: guaranteed_msging: {enabled: false} above"
                )
