# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on one machine, for tests: controller, three nodes, three tiers of pretend GPUs.

Needs slurmctld, slurmd, slurm-client and munge, and neither systemd nor root:

    python tests/slurm/onebox.py up /tmp/box       # prints the SLURM_CONF to export
    python tests/slurm/onebox.py down /tmp/box
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
GPUS = {"bronze": 4, "silver": 2, "gold": 1}
_SBIN = ["/usr/sbin", "/usr/local/sbin", "/sbin"]


def _which(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *_SBIN]))


def missing_programs() -> list[str]:
    """Which of the programs this machine lacks."""
    return [program for program in PROGRAMS if _which(program) is None]


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Polls until the condition holds; TimeoutError says what did not happen."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all open at once so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _runs(pid: int) -> bool:
    """Whether the process is there and not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


@dataclass
class OneBox:
    """The cluster in a folder of its own."""

    root: Path
    gpus: dict[str, int] = field(default_factory=lambda: dict(GPUS))

    @property
    def environment(self) -> dict[str, str]:
        """What a Slurm command needs to find this cluster and no other."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
        path = os.pathsep.join([os.environ.get("PATH", ""), *_SBIN])
        return {**kept, "PATH": path, "SLURM_CONF": str(self.root / "etc/slurm.conf")}

    def command(self, *arguments: str, timeout: float = 30) -> str:
        """Output of a Slurm command; CalledProcessError when it fails."""
        done = subprocess.run(
            arguments,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=True,
        )
        return done.stdout

    def up(self) -> None:
        """Starts everything and returns when all nodes are idle."""
        self._write_files()
        run, log = self.root / "run", self.root / "log"
        self._start(
            "munged",
            "--force",  # the folder may lie below one that others can write, such as /tmp
            f"--key-file={self.root / 'etc/munge.key'}",
            f"--socket={run / 'munge.socket'}",
            f"--pid-file={run / 'munged.pid'}",
            f"--log-file={log / 'munged.log'}",
            f"--seed-file={run / 'munged.seed'}",
        )
        self.start_controller()
        for tier in self.gpus:
            self._start("slurmd", "-f", str(self.root / "etc/slurm.conf"), "-N", f"{tier}0")
        try:
            wait_until(self._all_idle, 60, "the nodes become idle")
        except TimeoutError as error:
            tails = [
                f"--- {path.name}\n" + "\n".join(path.read_text().splitlines()[-15:])
                for path in sorted(log.glob("*.log"))
            ]
            raise TimeoutError("\n".join([str(error), *tails])) from None

    def start_controller(self) -> None:
        """Starts slurmctld, at first or again."""
        self._start("slurmctld", "-f", str(self.root / "etc/slurm.conf"))

    def stop_controller(self) -> None:
        """Ends slurmctld alone; the jobs go on."""
        self._stop("slurmctld")

    def signal_controller(self, number: int) -> None:
        """Sends slurmctld a signal; SIGSTOP makes it slow without end."""
        os.kill(self._pid("slurmctld"), number)

    def down(self) -> None:
        """Cancels the jobs and ends every daemon; safe at any time."""
        if self._pid("slurmctld"):
            with contextlib.suppress(OSError):
                self.signal_controller(signal.SIGCONT)
            with contextlib.suppress(subprocess.SubprocessError, TimeoutError):
                ids = self.command("squeue", "-h", "-o", "%A", timeout=10).split()
                if ids:
                    self.command("scancel", *sorted(set(ids)), timeout=10)
                wait_until(lambda: not self.command("squeue", "-h").strip(), 15, "the jobs end")
        for name in [*(f"slurmd.{tier}0" for tier in self.gpus), "slurmctld", "munged"]:
            self._stop(name)

    def _all_idle(self) -> bool:
        with contextlib.suppress(subprocess.SubprocessError):
            states = self.command("sinfo", "-h", "-N", "-o", "%P %T", timeout=10).split("\n")
            return states.count("train* idle") == len(self.gpus)
        return False

    def _start(self, program: str, *arguments: str) -> None:
        path = _which(program)
        if path is None:
            raise FileNotFoundError(program)
        done = subprocess.run(
            [path, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")

    def _pid(self, name: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((self.root / "run" / f"{name}.pid").read_text())
        return 0

    def _stop(self, name: str) -> None:
        pid = self._pid(name)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not pid or not _runs(pid):
                return
            os.kill(pid, number)
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: not _runs(pid), 10, f"{name} ends")

    def _write_files(self) -> None:
        for name in ("etc", "run", "log", "state", "spool", "gpu"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        for folder in (self.root, self.root / "run"):
            folder.chmod(0o755)  # munged refuses a socket that others cannot reach
        key = self.root / "etc/munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(1024))
        conf = self.root / "etc/slurm.conf"
        if conf.exists():
            return
        controller, *ports = _free_ports(1 + len(self.gpus))
        nodes, partitions, gres = [], [], []
        for (tier, count), port in zip(self.gpus.items(), ports, strict=True):
            (self.root / "spool" / f"{tier}0").mkdir(exist_ok=True)
            nodes.append(
                f"NodeName={tier}0 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
                f"CPUs={count} Feature={tier} Gres=gpu:{tier}:{count} State=UNKNOWN"
            )
            partitions.append(f"PartitionName={tier} Nodes={tier}0 DefaultTime=60 State=UP")
            files = [self._pretend_gpu(self.root / "gpu" / f"{tier}{i}") for i in range(count)]
            gres.append(f"NodeName={tier}0 Name=gpu Type={tier} File={','.join(map(str, files))}")
        partitions.append("PartitionName=train Nodes=ALL Default=YES DefaultTime=60 State=UP")
        (self.root / "etc/gres.conf").write_text("\n".join(gres) + "\n")
        text = (Path(__file__).parent / "slurm.conf.in").read_text()
        for name, value in {
            "ROOT": str(self.root),
            "USER": getpass.getuser(),
            "CONTROLLER_PORT": str(controller),
            "NODES": "\n".join(nodes),
            "PARTITIONS": "\n".join(partitions),
        }.items():
            text = text.replace(f"@{name}@", value)
        conf.write_text(text)

    @staticmethod
    def _pretend_gpu(path: Path) -> Path:
        """A device file where we may make one (so CUDA_VISIBLE_DEVICES is set), else a plain one.

        Without a file per GPU the node would come up invalid.
        """
        if not path.exists():
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                path.touch()
        return path


@contextlib.contextmanager
def onebox(root: Path, gpus: dict[str, int] | None = None) -> Iterator[OneBox]:
    """The cluster for the length of a with-block."""
    box = OneBox(root, dict(gpus or GPUS))
    try:
        box.up()
        yield box
    finally:
        box.down()


if __name__ == "__main__":
    verb, folder = sys.argv[1:]
    the_box = OneBox(Path(folder).resolve())
    if verb == "up":
        the_box.up()
        sys.stdout.write(f"export SLURM_CONF={the_box.environment['SLURM_CONF']}\n")
    elif verb == "down":
        the_box.down()
    else:
        sys.exit(f"up or down, not {verb!r}")
