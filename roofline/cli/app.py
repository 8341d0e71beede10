"""`roofline app`: the dashboard in a browser, served on this machine only unless an address is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from roofline.errors import BadValue, NoAnswer

FLAGS = (  # also in the dashboard's config.toml; here they win over a config of the user
    "--server.headless=true",
    "--server.fileWatcherType=none",
    "--browser.gatherUsageStats=false",
    "--client.showErrorDetails=none",
    "--client.showErrorLinks=false",
    "--client.toolbarMode=minimal",
    "--runner.magicEnabled=false",
    "--runner.postScriptGC=false",
)


@click.command("app")
@click.option("--port", default="8501", show_default=True, metavar="N", help="Port to listen on.")
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    metavar="IP",
    help="Address to listen on; 0.0.0.0 lets other machines in.",
)
def app(port: str, address: str) -> None:
    """The dashboard, in a browser.

    \b
    roofline app
    roofline app --port 8600

    It listens on this machine only unless --address says otherwise, and asks nothing of any other machine.
    """
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise BadValue("--port", port, "a port from 1 to 65535")
    from importlib.util import find_spec

    if find_spec("streamlit") is None:
        raise NoAnswer("the dashboard needs Streamlit, which is not installed: pip install streamlit")
    click.echo(f"http://{'127.0.0.1' if address == '0.0.0.0' else address}:{port}  (Ctrl-C stops it)", err=True)
    os.execv(sys.executable, command(port, address))


def command(port: str, address: str) -> list[str]:
    """The process that serves the dashboard."""
    script = Path(__file__).parent.parent / "dashboard" / "entry.py"
    run = [sys.executable, "-m", "roofline.dashboard", "run", str(script)]
    return [*run, f"--server.port={port}", f"--server.address={address}", *FLAGS]
