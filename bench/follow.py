"""Measures how soon a followed report shows a fault: `python -m bench.follow`.

A router runs with a client that publishes what somebody wants. A report follows its traces. Then another client
begins to publish what nobody wants; the time runs until that black hole stands in the table of findings.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

GOAL_S: Final = 30.0
_PATIENCE_S: Final = 300.0
_ROUTER: Final = """
router: {{name: edge, data_dir: "{folder}/data"}}
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace:
  directory: {folder}/traces
  sample: 1.0
  rotation: {{max_seconds: {seconds}}}
msg_vpns:
  blue:
    authentication: {{basic: {{enabled: false}}}}
"""


def main() -> None:
    """Print the seconds of each round; exit code 1 when the slowest misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rotation", type=int, default=5, help="seconds of a trace file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vpnrouter-follow-") as scratch:
        folder = Path(scratch)
        config = folder / "edge.yaml"
        config.write_text(_ROUTER.format(folder=folder, seconds=given.rotation))
        (folder / "traces").mkdir()
        with _command("run", str(config)) as router:
            ready = router.stdout.readline() if router.stdout is not None else ""
            port = int(ready.partition("mqtt=127.0.0.1:")[2].split()[0])
            stop = threading.Event()
            reader = _client(port, "reader")
            reader.subscribe("wanted/#")
            threading.Thread(target=_publish, args=(port, "wanted/a", stop), daemon=True).start()
            arguments = ["report", str(folder / "traces"), "--output", str(folder / "out")]
            with _command(*arguments, "--follow", "--format", "json", "--every", "2") as report:
                findings = folder / "out" / "findings.json"
                _wait(findings.exists)
                taken = []
                for number in range(given.rounds):
                    begun = time.monotonic()
                    topic = f"unwanted/{number}"
                    threading.Thread(target=_publish, args=(port, topic, stop), daemon=True).start()
                    _wait(partial(_tells_of, findings, topic))
                    taken.append(time.monotonic() - begun)
                    print(f"black hole {topic} found after {taken[-1]:.1f} s", flush=True)
                stop.set()
                report.terminate()
                report.wait()
            router.terminate()
            router.wait()
    sys.exit(0 if max(taken) <= GOAL_S else 1)


def _command(*arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", "from vpnrouter.cli.app import main; main()", *arguments]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _client(port: int, name: str) -> mqtt.Client:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, name)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def _publish(port: int, topic: str, stop: threading.Event) -> None:
    client = _client(port, f"publisher-{topic.replace('/', '-')}")
    for number in itertools.count():
        client.publish(topic, str(number))
        if stop.wait(0.01):
            break
    client.disconnect()


def _tells_of(findings: Path, topic: str) -> bool:
    rows = json.loads(findings.read_text(encoding="utf-8"))
    return any(row["kind"] == "black_hole" and row["topic"] == topic for row in rows)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("not found in time")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
