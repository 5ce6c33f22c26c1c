"""Following takes minutes, and a session of its own: it runs with the long tests."""

import os

collect_ignore = [] if os.environ.get("VPNROUTER_LONG") else ["test_follow.py"]
