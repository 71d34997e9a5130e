# SPDX-License-Identifier: Apache-2.0
"""What glidepath writes, whatever the names in it: pages, tables and lines of a terminal."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest
from full_disk import files_of_at_most
from log_files import write
from slurm_world import HOPELESS, World, job

import glidepath as gp
from glidepath import _words
from glidepath.cli import _slurm, main

ROWS = "step,loss\n" + "".join(f"{i},{1 / i + 0.2}\n" for i in range(1, 60))
# ESC and its two-letter form, a bell, a mark that turns text round, markup of two kinds, a page's.
NAMES = [
    "\x1b[31mred",
    "\x9b31m",
    "bell\x07",
    "\u202egnp",
    "[bold]x[/bold]",
    "<!--<script>",
    "&<b>",
]


def log_of(folder: Path, name: str) -> Path:
    return write(folder / f"{name}.csv", ROWS)


# ------------------------------------------------------------------------------------------ pages


class Scripts(HTMLParser):
    """The elements of scripts of a page, as a browser finds them where no comment is in one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = tag == "script"
        if self.inside:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1] += data


@pytest.mark.parametrize("name", [*NAMES, "</script><script>alert(1)</script>", "\udcff"])
def test_no_name_breaks_a_page(tmp_path: Path, name: str) -> None:
    pytest.importorskip("plotly")
    log = write(tmp_path / "log.csv", ROWS)
    (trace,) = gp.read_traces(log)
    run = gp.Trace(trace.step, trace.loss, name=name)
    from glidepath import _report

    page = tmp_path / "page.html"
    _report.write_runs(page, [run], target=None, budget=None, title=name)
    data, figures, _, _ = Scripts(page.read_text()).found
    assert "<" not in data + figures
    assert json.loads(data)[0]["run"] == name.replace("\udcff", "\\udcff")
    assert len(json.loads(figures)) > 0
    assert sorted(tmp_path.iterdir()) == [log, page]


def test_a_report_on_a_name_that_is_no_text_is_written(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    folder = tmp_path / os.fsdecode(b"runs\xff")
    log_of(folder, os.fsdecode(b"\xfe"))
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "-o", str(page)]) == 0
    assert "runs" in page.read_text()
    assert not list(tmp_path.glob("*.part"))


def test_a_report_replaces_regular_files_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    log = str(log_of(tmp_path, "log"))
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    assert main(["report", log, "-o", str(link)]) == 2
    assert "full: cannot write the report: No space left" in capsys.readouterr().err
    assert link.is_symlink()
    assert stat.S_ISCHR(link.stat().st_mode)
    assert main(["report", log, "-o", str(tmp_path)]) == 2
    assert "is a folder, expected a file" in capsys.readouterr().err
    # A link to a file stays a link, and a pipe a pipe.
    page = write(tmp_path / "page.html", "old")
    (tmp_path / "link.html").symlink_to("page.html")
    assert main(["report", log, "-o", str(tmp_path / "link.html")]) == 0
    assert (tmp_path / "link.html").is_symlink()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert main(["report", log, "-o", str(pipe)]) == 0
    reader.join(120)
    assert read == [page.read_text()]
    assert pipe.is_fifo()
    assert not list(tmp_path.glob("*.part"))


def test_a_full_disk_leaves_the_picture_that_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, picture = str(log_of(tmp_path, "log")), tmp_path / "picture.PNG"
    assert main(["fit", log, "--plot", str(picture)]) in (0, 1)
    before = picture.read_bytes()
    with files_of_at_most(100):
        assert main(["fit", log, "--robust", "--plot", str(picture)]) == 2
    assert "picture.PNG: cannot write the picture: File too large" in capsys.readouterr().err
    assert picture.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "picture.PNG"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_report_does_not_replace_a_device(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"x")
    except PermissionError:
        pytest.skip("no device nodes in this container")
    assert main(["report", str(log_of(tmp_path, "log")), "-o", str(device)]) == 0
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize("name", [*NAMES, "\udcff", "$x_{", "$a$"])
def test_no_name_stops_a_picture(tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    log = log_of(tmp_path, name)
    picture = tmp_path / "picture.svg"
    for verb in (["forecast", "--target", "0.1"], ["fit", "--family", "pow2"]):
        assert main([*verb, str(log), "--plot", str(picture)]) in (0, 1)
        assert picture.read_text().rstrip().endswith("</svg>")
        picture.unlink()


# ----------------------------------------------------------------------------------- the terminal


def check_lines(text: str) -> None:
    assert text
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("name", [name for name in NAMES if "/" not in name])
@pytest.mark.parametrize(
    "verb",
    [
        ["fit", "--family", "pow2"],
        ["metrics"],
        ["forecast", "--target", "0.1"],
        ["watch", "--once", "--target", "0.1"],
    ],
    ids=lambda verb: verb[0],
)
def test_no_name_commands_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str], name: str
) -> None:
    log = log_of(tmp_path, name)
    assert main([*verb, str(log)]) in (0, 1)
    said = capsys.readouterr()
    check_lines(said.out)
    check_lines(said.out + said.err)
    whole = "".join(line.strip() for line in said.out.split("\n"))
    assert (name if name.isprintable() else ascii(name)[1:-1]) in whole
    assert main([*verb, str(log), "--run" if verb[0] != "metrics" else "--json", "x"]) == 2
    check_lines(capsys.readouterr().err)


def test_no_job_commands_a_terminal(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_of(tmp_path, "\x1b[31m[bold]red")
    world.submit(job(1, f"{HOPELESS} trace={log}", name="\x1b[1m", reason="\x1b[2m"))
    world.submit(job(2, f"{HOPELESS} trace=\x1b[31mabsent"))
    world.cluster.advance(60)
    monkeypatch.setattr(_slurm, "_pilot", lambda **_: world.pilot)
    assert main(["slurm", "status"]) == 0
    assert main(["slurm", "plan"]) == 0
    assert main(["slurm", "run", "--rounds", "1"]) == 0
    for number in "12":
        assert main(["slurm", "why", number, "--log", str(world.log)]) == 0
    said = capsys.readouterr()
    check_lines(said.out)


def test_why_before_any_round_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["slurm", "why", "4711"]) == 2
    assert "no such decision log: nothing was decided so far" in capsys.readouterr().err
    for content, code in (("", 1), ("no log\n", 2)):  # as it is just being made; another file
        write(tmp_path / "glidepath" / "slurm.db", content)
        assert main(["slurm", "why", "4711"]) == code
        said = capsys.readouterr().err
        assert "slurm.db" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("digits", [2, 3])
def test_only_what_is_certain_is_written_as_certain(digits: int) -> None:
    certain = (f"{0:.{digits}f}", f"{1:.{digits}f}")
    assert (_words.chance(0.0, digits), _words.chance(1.0, digits)) == certain
    for chance in (1e-300, 1e-9, 0.1**digits / 2.1, 0.0005, 0.004, 0.3, 0.9951, 0.9999, 1 - 1e-16):
        for written in (_words.chance(chance, digits), _words.chance(1 - chance, digits)):
            assert written not in certain or chance in (0, 1) or 1 - chance in (0, 1)
            bound, value = re.fullmatch(r"([<>]?) ?([\d.]+)", written).groups()  # type: ignore[union-attr]
            nearest = min(abs(float(value) - chance), abs(float(value) - 1 + chance))
            assert nearest <= 0.1**digits * (1 if bound else 0.5) * (1 + 1e-9)


# ---------------------------------------------------------------- files that are read and written


@pytest.mark.parametrize(
    "line",
    [
        ["report", "{log}", "-o", "{log}"],
        ["report", "{log}", "--out", "{link}"],
        ["report", "{folder}", "-o", "{log}"],
        ["fit", "{log}", "--plot", "{log}"],
        ["forecast", "{log}", "--plot", "{link}"],
        ["simulate", "{jobs}", "--gpus", "2", "--report", "{jobs}"],
        ["plan", "{jobs}", "--gpus", "2", "--plot", "{jobs}"],
        ["bench", "accuracy", "{results}", "--out", "{results}"],
        ["bench", "compare", "{results}", "--out", "{results}"],
    ],
)
def test_no_verb_writes_over_what_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: list[str]
) -> None:
    log = log_of(tmp_path, "c")
    jobs = write(tmp_path / "jobs.csv", "submit_s,duration_s,gpus\n0,60,1\n5,60,1\n")
    link = tmp_path / "link.csv"
    link.symlink_to(log)
    results = write(tmp_path / "results.json", "{}")
    names = {"log": log, "link": link, "folder": tmp_path, "jobs": jobs, "results": results}
    before = {path: path.read_text() for path in (log, jobs, results)}
    assert main([part.format(**names) for part in line]) == 2
    target = line[-1].format(**names)
    assert f"{target}: this command reads that file" in capsys.readouterr().err.replace("\n", "")
    assert {path: path.read_text() for path in before} == before


def test_a_page_in_the_folder_that_is_read_is_written_again(tmp_path: Path) -> None:
    log_of(tmp_path, "c")
    page = tmp_path / "report.html"
    for _ in range(2):
        assert main(["report", str(tmp_path), "-o", str(page)]) == 0
