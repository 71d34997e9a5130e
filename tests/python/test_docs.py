# SPDX-License-Identifier: Apache-2.0
"""Documents are promises: snippets come from programs that run, links lead somewhere."""

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import glidepath as gp

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# <!-- from examples/01_fit_one_trace.py --> says that the block below is an excerpt of that file.
SNIPPET = re.compile(r"<!-- from (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")


def excerpts(text: str) -> list[tuple[str, str]]:
    return SNIPPET.findall(text)


def parts_of(snippet: str) -> list[str]:
    """A snippet may leave lines out where it says so with a line of three dots."""
    return [part.strip("\n") for part in re.split(r"^\s*(?:#|//) \.\.\.\n", snippet, flags=re.M)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_snippets_are_excerpts_of_programs(document: Path) -> None:
    for source, snippet in excerpts(document.read_text()):
        program = (ROOT / source).read_text()
        for part in parts_of(snippet):
            assert part in program, f"{document.name}: not in {source}:\n{part}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text()):
        if "://" not in link:
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def anchor(heading: str) -> str:
    """The anchor of a heading as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_pages_lead_to_a_heading(document: Path) -> None:
    for link, target in ANCHOR.findall(document.read_text()):
        if "://" not in link:
            page = document if not link else document.parent / link
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
            assert target in map(anchor, headings), f"{document.name}: {link}#{target}"


# A page that a comment or docstring cites, perhaps with one of its chapters.
CITED = re.compile(r"(docs/[\w/]+\.md)(?:, \"([^\"]+)\")?")


def lost_citations(path: str, text: str) -> list[str]:
    """Pages and chapters that a source cites and that are not there."""
    lost = []
    for cited, chapter in CITED.findall(re.sub(r"\n\s*(?:///|//|\*|#)? *", " ", text)):
        page = ROOT / cited
        written = page.read_text() if page.is_file() else ""
        starts = re.findall(r"^(?:#+ (?:\d+ )?|\*\*)([^\n*]+)", written, re.MULTILINE)
        if not written or (chapter and not any(start.startswith(chapter) for start in starts)):
            lost.append(f"{path}: {cited} {chapter}".strip())
    return lost


def test_pages_that_sources_cite_have_what_is_cited() -> None:
    folders = ("src", "include", "python", "bench", "examples")
    kinds = (".hpp", ".cpp", ".h", ".inl", ".inc", ".py")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    sources = [path for path in paths if path.suffix in kinds]
    lost = [line for path in sources for line in lost_citations(str(path), path.read_text())]
    assert not lost, "\n".join(lost)
    assert len(lost_citations("a.hpp", '/// (docs/live.md, "A chapter\n/// that is gone")')) == 1
    assert len(lost_citations("a.hpp", "/// see docs/gone.md")) == 1


def table_of_policies() -> list[list[str]]:
    """The rows of the table of policies in docs/method/simulate.md."""
    text = (ROOT / "docs" / "method" / "simulate.md").read_text()
    rows = re.findall(r"^\| (`\w+` \|.*) \|$", text, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row.split("|")] for row in rows]


def test_the_table_of_policies_is_that_of_the_code() -> None:
    def row(policy: gp.PolicyInfo) -> list[str]:
        clock = [f"{time:g}" for time in (policy.session_s, policy.round_s) if time]
        every = f"{', '.join(clock)} s" if clock else ""
        stops = "yes" if policy.stops_at_target else ""
        told = [policy.name, policy.description, policy.sees, every, stops]
        return [*told, policy.source, policy.checked_on]

    assert sorted(table_of_policies()) == sorted(row(policy) for policy in gp.policies())


def test_the_tables_of_a_workload_on_the_page_are_what_is_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    (table,) = re.findall(r"^## Workloads\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    for file in ("tiers.csv", "jobs.csv"):
        (rows,) = re.findall(rf"^\| `{file}` .*\n\|---.*\n((?:\|.*\n)+)", table, re.MULTILINE)
        cells = [row.split("|")[1] for row in rows.splitlines()]
        columns = [name.replace("TIER", "only") for name in re.findall(r"`(\w+)`", "".join(cells))]
        values = {"name": "only", "gpu": "T4", "note": "", "curve": "", "budget_steps": ""}
        row = [values.get(column, "1") for column in columns]
        (tmp_path / file).write_text(f"{','.join(columns)}\n{','.join(row)}\n")
    workload = gp.read_workload(tmp_path)
    assert workload.notes == ()
    (tier,), jobs = workload.tiers, workload.jobs
    assert (tier.price_per_gpu_hour, tier.host_memory_gb) == (1.0, 1.0)
    assert {"deadline_s", "restart_s", "memory_activity", "job_class"} <= jobs.keys()


def test_every_public_name_of_python_stands_beside_its_twin() -> None:
    table = (ROOT / "docs" / "api" / "index.md").read_text()
    missing = [name for name in gp.__all__ if name != "__version__" and f"`{name}`" not in table]
    assert not missing


def test_a_wrong_snippet_would_be_found() -> None:
    source = "examples/03_plan_one_round.py"
    block = "plan = gp.solve_round(\n# ...\nx\n"
    ((found, snippet),) = excerpts(f"<!-- from {source} -->\n```python\n{block}```\n")
    assert found == source
    first, second = parts_of(snippet)
    program = (ROOT / source).read_text()
    assert first in program
    assert second == "x"
    assert "gp.fit(other)" not in program


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Of what only Python has; those with a training framework are run by the tests of its adapter.
PYTHON_ONLY = sorted(
    path
    for path in (ROOT / "examples" / "python").glob("*.py")
    if not path.name.startswith("with_")
)


def test_examples_have_a_twin() -> None:
    assert all(example.with_suffix(".cpp").exists() for example in EXAMPLES)


def test_an_example_says_in_words_that_a_target_is_not_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = (ROOT / "examples/python/follow_a_log.py").read_text()
    assert "target, budget = 1.55," in program
    exec(program.replace("target, budget = 1.55,", "target, budget = 0.5,"), {})
    out = capsys.readouterr().out
    assert "at step 1000: reaches 0.5 probably never" in out
    assert "inf" not in out


@pytest.mark.parametrize("example", EXAMPLES + PYTHON_ONLY, ids=lambda path: path.name)
def test_examples_run(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "needs Ceres, and this glidepath was built without it" in done.stderr:
        pytest.skip("this build has no Ceres")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


# Blocks that are no excerpts are run as they stand, by the tests named here.
RUN = {
    "README.md": ["test_the_python_of_the_readme_prints_what_the_readme_shows"],
    "docs/benchmark.md": [
        "test_the_method_of_the_benchmark_page_is_scored",
        "test_the_python_of_the_benchmark_page_runs",
        "test_the_time_to_target_of_the_benchmark_page_is_scored",
    ],
    "docs/environment.md": [
        "test_the_game_of_the_environment_page_is_that_of_the_simulator",
        "test_the_vector_of_the_environment_page_runs",
    ],
    "docs/slurm.md": [
        "test_the_training_loop_of_the_slurm_page_runs",
        "test_the_pilot_of_the_slurm_page_runs",
    ],
}


def blocks(document: Path, language: str) -> list[str]:
    """The blocks of a document that are not excerpts of a program."""
    text = SNIPPET.sub("", document.read_text())
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_of_python_is_an_excerpt_or_run(document: Path) -> None:
    tests = RUN.get(document.relative_to(ROOT).as_posix(), [])
    assert len(blocks(document, "python")) == len([name for name in tests if name in globals()])


def run_block(code: str, folder: Path, before: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_training_loop_of_the_slurm_page_runs(tmp_path: Path) -> None:
    code = blocks(ROOT / "docs" / "slurm.md", "python")[0]
    yours = """
import os, signal
asked_at = {at}
def train_one_step():
    global taken
    taken += 1
    if taken == asked_at:
        os.kill(os.getpid(), signal.SIGUSR1)
    return 1 / taken
taken = 0
"""
    run_block(code, tmp_path, yours.format(at=5_000))
    assert (tmp_path / "step.txt").read_text() == "5000"  # it was asked, saved, and left
    run_block(code, tmp_path, yours.format(at=0))
    (run,) = gp.read_traces(tmp_path / "glidepath-local.csv")
    assert len(run) == 20_000
    assert run.loss[-1] == pytest.approx(1 / 15_000)  # it went on from there


def test_the_pilot_of_the_slurm_page_runs(tmp_path: Path) -> None:
    code = blocks(ROOT / "docs" / "slurm.md", "python")[1]
    cluster = """
from dataclasses import replace
from functools import partial
from pathlib import Path
from glidepath.engines.slurm import ClusterJob, ClusterTier
from glidepath.engines import slurm
from glidepath.engines.slurm.simulated import SimulatedRun, SimulatedCluster
from slurm_stub import SlurmStub

tiers = [ClusterTier(name, name, (name + "0",), 2, 2, 1.0) for name in ("bronze", "silver")]
cluster = SimulatedCluster(tiers, Path("logs"))
cluster.folder.mkdir()
comment = "glidepath target=0.4 budget=2000"
job = ClusterJob("17", "me", "PENDING", "bronze", gpus=1, limit_s=3600.0, comment=comment)
cluster.submit(SimulatedRun(replace(job, workdir="logs"), loss=lambda step: 1 / step, budget=2000))
slurm.Slurm = partial(
    slurm.Slurm, users=["me"], run=SlurmStub(cluster), clock=lambda: cluster.now_s
)
"""
    assert run_block(code, tmp_path, cluster).startswith("17 ")


def test_the_rehearsal_of_the_slurm_page_prints_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    page = (ROOT / "docs" / "slurm.md").read_text()
    (line,) = [line for line in commands(page) if "--simulated" in line]
    (tmp_path / "data").symlink_to(ROOT / "data")
    done = type_in(tmp_path, line)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    (shown,) = [part for part in page.split("```") if "  suspend  " in part]
    said = [text for text in shown.splitlines() if text not in ("", "…")]
    assert len(said) == 8
    assert printed[:6] == said[:6]
    assert [text for text in printed if text in said] == said  # all of them, in this order


def test_the_table_of_the_slurm_page_has_the_columns_of_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("typer")
    from glidepath.cli import _slurm_rounds

    job = SimpleNamespace(id="4711", state="RUNNING")
    law = SimpleNamespace(last_step=0.0, probability=math.nan, verdict="unknown", problem="")
    view = SimpleNamespace(
        job=job, forecast=law, tier="a", planned="", starts_s=None, finish_s=None, reason=""
    )
    _slurm_rounds.print_jobs(SimpleNamespace(views=[view]))
    page = (ROOT / "docs" / "slurm.md").read_text()
    (shown,) = re.findall(r"^job +state .*$", page, re.MULTILINE)
    assert capsys.readouterr().out.splitlines()[0].split() == shown.split()


def benchmark_folder(tmp_path: Path, *, methods: int) -> list[str]:
    """Make the folder of a reader of the benchmark page; the blocks of Python of that page."""
    code = blocks(ROOT / "docs" / "benchmark.md", "python")
    parts = [code[0], code[2]][:methods]
    (tmp_path / "mine.py").write_text("\n\n".join(parts))
    (tmp_path / "data").symlink_to(ROOT / "data")
    return code


def type_in(folder: Path, line: list[str]) -> subprocess.CompletedProcess[str]:
    """Type a command line; as with the installed program, Python does not know the folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "glidepath", *line],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def benchmark_commands(verb: str) -> list[list[str]]:
    lines = commands((ROOT / "docs" / "benchmark.md").read_text())
    found = [line for line in lines if line[:2] == ["bench", verb]]
    assert found
    return found


def test_the_method_of_the_benchmark_page_is_scored(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    first = benchmark_folder(tmp_path, methods=1)[0]
    assert len([line for line in first.splitlines() if line]) <= 15
    (line,) = benchmark_commands("accuracy")
    done = type_in(tmp_path, line)
    assert done.returncode == 0, done.stderr
    assert "mine:drift" in done.stdout
    result = gp.bench.read_accuracy(tmp_path / "results.json")
    assert result.methods == ["mine:drift", "glidepath", "aic", "last"]
    assert not result.failures()
    assert "mine:drift" in (tmp_path / "page.html").read_text()
    printed, as_json = (type_in(tmp_path, line) for line in benchmark_commands("compare"))
    assert printed.stdout == done.stdout  # read again, it says the same
    assert json.loads(as_json.stdout)["schema"] == "glidepath.accuracy/3"


def test_the_python_of_the_benchmark_page_runs(tmp_path: Path) -> None:
    code = benchmark_folder(tmp_path, methods=1)[1]
    check = "import sys; sys.path.insert(0, '')\n"
    assert run_block(code + "assert again == result\n", tmp_path, check).startswith("drift ")


def test_the_time_to_target_of_the_benchmark_page_is_scored(tmp_path: Path) -> None:
    benchmark_folder(tmp_path, methods=2)
    (line,) = benchmark_commands("reach")
    done = type_in(tmp_path, [*line, "--json"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["method"] for row in found["rows"]} == {
        "mine:drift",
        "glidepath+past",
        "past-times",
    }
    by_method = {row["method"]: row for row in found["table"]}
    assert by_method["mine:drift"]["n"] > 0
    assert by_method["mine:drift"]["error"] != by_method["past-times"]["error"]


def environment_page() -> list[str]:
    pytest.importorskip("gymnasium")
    return blocks(ROOT / "docs" / "environment.md", "python")


def test_the_game_of_the_environment_page_is_that_of_the_simulator(tmp_path: Path) -> None:
    words = run_block(environment_page()[0], tmp_path).split()
    assert words[0] == words[-4]
    first_fit = (
        "want = gp.simulate(workload, 'first_fit')\nassert run.mean_jct_s == want.mean_jct_s"
    )
    run_block(environment_page()[0] + first_fit, tmp_path)


def test_the_vector_of_the_environment_page_runs(tmp_path: Path) -> None:
    assert run_block(environment_page()[1], tmp_path).startswith("(16, ")


# What a reader is to type: lines after four blanks, or in a block of the shell's.
TYPED = re.compile(r"^(?:    )?(?:\$ )?glidepath ([a-z].*)", re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```|^(    .*?)$", re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The command lines of a document, without what the shell does with their output."""
    text = re.sub(r"\\\n\s*", "", text)
    code = "\n".join(block or line for block, line in SHELL.findall(text))
    lines = [re.split(r"\s(?:\|\||[|>#&])|;\s", line)[0] for line in TYPED.findall(code)]
    return [shlex.split(line) for line in lines]


def test_every_command_of_the_documents_has_such_a_verb_and_such_options() -> None:
    pytest.importorskip("typer")
    from typer.main import get_command

    from glidepath.cli import app

    found = [(path.name, line) for path in DOCUMENTS for line in commands(path.read_text())]
    assert len(found) >= 8
    for name, line in found:
        command, words = get_command(app), list(line)
        while hasattr(command, "commands") and words[0] in command.commands:  # down to the verb
            command = command.commands[words.pop(0)]
        try:
            command.make_context("glidepath", words)
        except Exception as error:
            raise AssertionError(f"{name}: glidepath {' '.join(line)}: {error}") from None


# What runs figures and tests: a program of bench/, or tests of a file, perhaps those of one name.
PROGRAM = re.compile(r"python (bench/[\w/]+\.py)")
PYTEST = re.compile(r"pytest (tests/[\w/]+\.py)(?:[^`;)\n]*? -k (\w+))?")
GTEST = re.compile(r"(\w+_test) --gtest_filter='([^']+)'")


def gtests(program: str) -> list[str]:
    """The names of the tests of a C++ test program, those of parameters without them."""
    text = (ROOT / "tests" / f"{program}.cpp").read_text()
    return [
        f"{suite}.{test}" for suite, test in re.findall(r"^TEST\w*\((\w+),\s*(\w+)", text, re.M)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_runs_is_there(document: Path) -> None:
    text = re.sub(r"\n\s*", " ", document.read_text())
    for program in PROGRAM.findall(text):
        assert (ROOT / program).is_file(), f"{document.name}: {program}"
    for file, name in PYTEST.findall(text):
        assert (ROOT / file).is_file(), f"{document.name}: {file}"
        tests = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(), re.M)
        assert any(name in test for test in tests), f"{document.name}: {file} -k {name}"
    for program, pattern in GTEST.findall(text):
        found = fnmatch.filter(gtests(program), pattern)
        assert found, f"{document.name}: {program} --gtest_filter='{pattern}'"


def test_the_documents_run_programs_and_tests_of_each_kind() -> None:
    text = " ".join(re.sub(r"\n\s*", " ", document.read_text()) for document in DOCUMENTS)
    assert len(PROGRAM.findall(text)) > 20
    assert len([name for _, name in PYTEST.findall(text) if name]) >= 2
    assert len(GTEST.findall(text)) >= 3


def printed_after(document: Path, words: str) -> list[str]:
    """The lines that a document shows, indented, after some of its words."""
    text = document.read_text()
    return re.findall(r"^ {4}(.+)$", text[text.index(words) :].split("\n\n")[1], re.MULTILINE)


def output_of(*command: str) -> list[str]:
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_python_of_the_readme_prints_what_the_readme_shows() -> None:
    readme = ROOT / "README.md"
    found = output_of("-c", blocks(readme, "python")[0])
    assert found == printed_after(readme, "ahead.plot()\n```")


def test_the_first_command_of_the_readme_prints_what_the_readme_says() -> None:
    readme = ROOT / "README.md"
    words = shlex.split(" ".join(printed_after(readme, "sees the first 35 %:")).replace("\\", ""))
    found = output_of("-m", words[0].rpartition("/")[2], *words[1:])
    ends = printed_after(readme, "there), and ends with")
    assert found[-2:] == ends
    said = re.search(r"step 900, (\S+) \(80 % within (\S+ to \S+);", readme.read_text())
    assert said is not None
    (row,) = [line for line in found if line.startswith("│ base-b8x900")]
    assert all(figure in row for figure in said.groups())


def test_the_plan_that_a_page_explains_is_the_one_of_its_command() -> None:
    page = (ROOT / "docs" / "supercom_plan.md").read_text()
    (command,) = [line for line in commands(page) if line[0] == "plan"]
    without_picture = command[: command.index("--plot")]
    found = json.loads("".join(output_of("-m", "glidepath", *without_picture, "--json")))
    reasons = {job["job"]: job["reason"] for job in found["jobs"]}
    rows = re.findall(r"^    (\d+) .* (\d+ of \d+) +(.*)$", page, re.MULTILINE)
    assert [(job, reasons[job]) for job, _, _ in rows] == [(job, why) for job, _, why in rows]
    for tier, price in found["prices"].items():
        assert re.search(rf"\b{tier}\s(?:is worth\s)?{3600 * price:.2f}", page), tier
    runs = [job for job in found["jobs"] if job["state"] == "runs"]
    waiting = len(reasons) - len(runs)
    assert (
        f"{len(reasons)} jobs are live and there are 8 GPUs, so {len(runs)} jobs run and " in page
    )
    assert f"and {waiting} wait." in page


def test_the_policies_of_the_readme_have_the_figures_of_the_demo() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(
        r"^\| `(\w+)` \| (\S+) h \| (\S+) h \| (\S+) \| (\S+) kWh \| (.*) \|$", readme, re.M
    )
    (demo,) = re.findall(r"glidepath (simulate .*--compare)", (ROOT / "Makefile").read_text())
    words = {"target": "at their target", "never": "stopped", "finished": "finished"}
    found = []
    for row in json.loads("".join(output_of("-m", "glidepath", *demo.split(), "--json"))):
        ends = sorted(row["outcomes"].items(), key=lambda end: -end[1])
        found.append(
            (
                row["policy"],
                f"{row['mean_wait_per_user_s'] / 3600:.2f}",
                f"{row['mean_jct_s'] / 3600:.2f}",
                f"{row['gpu_seconds'] / 3600:.1f}",
                f"{row['energy_kwh']:.1f}",
                ", ".join(f"{jobs} {words[end]}" for end, jobs in ends),
            )
        )
    assert shown == found


def test_the_example_of_an_accelerator_prints_what_its_page_shows() -> None:
    page = ROOT / "docs" / "accelerator.md"
    shown = printed_after(page, "four T4 are sure enough")
    assert output_of("examples/07_choose_accelerator.py") == shown


def compiled(source: Path, *flags: str) -> str:
    """What the compiler says of a program with the public headers, "" where it likes it."""
    generated = sorted((ROOT / "build").glob("*/include"))
    if not generated or shutil.which("c++") is None:
        pytest.skip("no build of the library beside the sources, or no compiler")
    eigen = subprocess.run(
        ["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True, check=True
    ).stdout.replace("-I", "-isystem ")
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags]
    command += [*eigen.split(), f"-I{ROOT / 'include'}", f"-I{generated[0]}", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_the_watch_of_the_page_cancels_a_run_only_where_it_says_so() -> None:
    page = (ROOT / "docs" / "live.md").read_text()
    (line,) = [line for line in page.splitlines() if "scancel" in line and line[:4] == "    "]
    for code in (0, 1, 2, 70, 130):
        shell = f"glidepath() {{ return {code}; }}; scancel() {{ echo cancelled; }}; {line}"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("cancelled\n" if code == 1 else "", "")


def test_the_cpp_of_the_readme_compiles(tmp_path: Path) -> None:
    source = tmp_path / "readme.cpp"
    source.write_text(blocks(ROOT / "README.md", "cpp")[0])
    assert compiled(source) == ""


def test_the_headers_warn_of_nothing_in_the_programs_of_others() -> None:
    flags = ["-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion"]
    assert compiled(ROOT / "tests" / "package" / "warnings.cpp", *flags) == ""
