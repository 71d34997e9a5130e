# SPDX-License-Identifier: Apache-2.0
"""Whatever a file holds, a reader gives traces, or an IoError or InputError in a sentence."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from log_files import check, one, write

import glidepath as gp

TABLE = "step,loss\n" + "".join(f"{i},{1 / i}\n" for i in range(1, 500))
LONG = "curve,step,value\n" + "".join(f"a,{i},{1 / i}\n" for i in range(1, 500))


def refusal(path: Path, form: str | None = None) -> str | None:
    """What is said of a log that is refused; any other error is one of the test."""
    try:
        gp.read_traces(path, format=form)
    except gp.IoError as error:
        return str(error)
    return None


# ------------------------------------------------------------------------------------------- gzip


@pytest.mark.parametrize("text", [TABLE, LONG], ids=["table", "long"])
@pytest.mark.parametrize("at", [12, 100, -6, -2, None])
def test_damaged_gzip_is_refused_with_its_name(tmp_path: Path, text: str, at: int | None) -> None:
    packed = bytearray(gzip.compress(text.encode()))
    if at is None:
        del packed[-40:]
    else:
        packed[at] ^= 0x55
    file = tmp_path / "log.csv.gz"
    file.write_bytes(packed)
    with pytest.raises(gp.IoError, match=r"log\.csv\.gz"):
        gp.read_traces(file)
    with pytest.raises(gp.IoError, match=r"log\.csv\.gz"):
        gp.metrics_of(file)
    with pytest.raises(gp.IoError, match=r"log\.csv\.gz"):
        gp.read_traces(file, format="jsonl")


def test_a_damaged_log_is_not_passed_over_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "sound.csv", TABLE)
    packed = bytearray(gzip.compress(TABLE.encode()))
    packed[-6] ^= 1  # of the checksum: every line can be unpacked
    (tmp_path / "damaged.csv.gz").write_bytes(packed)
    with pytest.raises(gp.IoError, match=r"damaged\.csv\.gz:501: CRC"):
        gp.read_traces(tmp_path)


EVENT = b"\x18".ljust(12, b"\0") + b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"  # as one begins


@pytest.mark.parametrize(
    ("name", "begins", "form"),
    [
        ("log.jsonl.gz", b'{"step": 1, "loss": 1}\n', None),
        ("trainer_state.json.gz", b'{"log_history": [\n', "trainer_state"),
        ("log.csv.gz", b"step,loss\n1,2\n", None),
        ("log.txt.gz", b"step 1 loss 2\n", None),
        ("log.json.gz", b'{"loss": [1, 2, 3],\n', "json"),
        ("events.gz", EVENT, None),
    ],
)
def test_what_is_unpacked_has_an_end(
    tmp_path: Path, name: str, begins: bytes, form: str | None
) -> None:
    blank = gzip.compress((b" " * 16383 + b"\n") * 1024)  # 16 MiB
    file = tmp_path / name
    file.write_bytes(gzip.compress(begins) + 65 * blank)
    with pytest.raises(gp.IoError, match=r"more than 1024 MiB,? unpacked"):
        gp.read_traces(file, format=form)


def test_a_line_has_an_end(tmp_path: Path) -> None:
    file = write(tmp_path / "log.txt", "step 1 loss 2\nstep 2 loss 1" + " " * (1 << 26) + "\n")
    with pytest.raises(gp.IoError, match=r"log\.txt:2: more than 64 MiB in a line"):
        gp.read_traces(file, format="text")


@pytest.mark.parametrize("zeros", [b"\0", b"\0\0\0", b"\0" * 4096, b"30,0.\0\0"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", "step,loss\n10,2\n20,1\n"),
        ("log.tsv", "step\tloss\n10\t2\n20\t1\n"),
        ("long.csv", "curve,step,value\na,10,2\na,20,1\n"),
        ("log.jsonl", '{"step": 10, "loss": 2}\n{"step": 20, "loss": 1}\n'),
        ("log.txt", "step 10 loss 2\nstep 20 loss 1\n"),
    ],
)
def test_zeros_that_a_crash_left_at_the_end_hide_no_young_log(
    tmp_path: Path, name: str, text: str, zeros: bytes
) -> None:
    (tmp_path / name).write_bytes(text.encode() + zeros)
    for path in (tmp_path / name, tmp_path):
        check(one(path), [10, 20], [2, 1])


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["at once", "on a new line"])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("log.csv", ("step,loss\n10,2\n", "20,1\n")),
        ("long.csv", ("curve,step,value\na,10,2\n", "a,20,1\n")),
        ("crlf.csv", ("curve,step,value\r\na,10,2\r\n", "a,20,1\r\n")),
        ("log.jsonl", ('{"step": 10, "loss": 2}\n', '{"step": 20, "loss": 1}\n')),
        ("log.txt", ("step 10 loss 2\n", "step 20 loss 1\n")),
    ],
)
def test_a_log_goes_on_behind_zeros_that_a_crash_left(
    tmp_path: Path, name: str, rows: tuple[str, str], end: bytes
) -> None:
    before, after = (part.encode() for part in rows)
    for count in (1, 40, 5000):
        (tmp_path / name).write_bytes(before + bytes(count) + end + after)
        check(one(tmp_path / name), [10, 20], [2, 1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "trainer_state.json",
            '{"log_history": [{"step": 10, "loss": 2}, {"step": 20, "loss": 1}]}',
        ),
        ("history.json", '{"step": [10, 20], "loss": [2, 1]}'),
        ("rows.json", '[{"step": 10, "loss": 2}, {"step": 20, "loss": 1}]'),
    ],
)
def test_zeros_at_the_end_of_a_document_of_json_are_no_part_of_it(
    tmp_path: Path, name: str, text: str
) -> None:
    file = tmp_path / name
    for zeros in (bytes(1), bytes(4096)):
        file.write_bytes(text.encode() + zeros)
        check(one(file), [10, 20], [2, 1])
        file.write_bytes(text.encode()[:-8] + zeros)
        if name == "rows.json":
            check(one(file), [10], [2])
        else:
            with pytest.raises(gp.IoError, match="1: the file ends too early, as if it was cut"):
                gp.read_traces(file)


def test_a_pattern_reads_a_young_log_with_zeros_at_its_end_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(b"at 10: 2\nat 20: 1\n" + bytes(512))
    (run,) = gp.read_traces(tmp_path, pattern=r"at (?P<step>\d+): (?P<value>\S+)", metric="loss")
    check(run, [10, 20], [2, 1])


# ------------------------------------------------------------------------------- many, long, deep


@pytest.mark.parametrize("first", ["curve,step,value,", "step,loss,"])
def test_a_header_of_many_columns_takes_time_in_proportion(tmp_path: Path, first: str) -> None:
    def seconds(columns: int) -> float:
        names = first + ",".join(f"c{i}" for i in range(columns))
        rows = "".join(f"{i}{f',{i}' * names.count(',')}\n" for i in (1, 2))
        file = write(tmp_path / "wide.csv", f"{names}\n{rows}")
        began = time.process_time()
        gp.read_traces(file)
        return time.process_time() - began

    seconds(10)  # imports
    assert seconds(40_000) < 20 * seconds(5_000) + 1  # quadratic is 64 times


@pytest.mark.parametrize("letters", [65_500, 65_519, 65_530, 131_072])
def test_a_header_may_be_longer_than_the_look_at_a_file(tmp_path: Path, letters: int) -> None:
    count = letters // 8
    names = ",".join(f"{i:07d}" for i in range(count))
    cells = ",".join(["1"] * count)
    long = write(tmp_path / "long.csv", f"{names},curve,step,value\n{cells},a,1,2\n{cells},a,2,1\n")
    check(one(long), [1, 2], [2, 1])
    names = names.replace("0", "a")  # of which none is a number
    wide = write(tmp_path / "wide.csv", f"{names},step,loss\n{cells},1,2\n{cells},2,1\n")
    check(one(wide, "loss"), [1, 2], [2, 1])


@pytest.mark.parametrize("piece", ["iteration 1/1 |", "loss 1/", "step 1 loss 2\r", "loss " * 9])
def test_a_console_line_takes_time_in_proportion(tmp_path: Path, piece: str) -> None:
    def seconds(letters: int) -> float:
        text = "step 1 loss 2\n" + piece * (letters // len(piece))
        file = write(tmp_path / "log.txt", text)
        began = time.process_time()
        gp.read_traces(file, format="text")
        return time.process_time() - began

    seconds(100)
    assert seconds(400_000) < 20 * seconds(50_000) + 1


def test_a_pattern_that_takes_for_ever_can_be_interrupted(tmp_path: Path) -> None:
    write(tmp_path / "log.txt", "a" * 64 + "b\n")
    program = (
        "import sys, glidepath as gp\nprint('begins', flush=True)\n"
        r"gp.read_traces(sys.argv[1], pattern=r'(?P<step>(a+)+)c(?P<value>\d)')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "log.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"begins\n"
        time.sleep(0.3)
        reading.send_signal(signal.SIGINT)
        _, said = reading.communicate(timeout=120)
    assert b"KeyboardInterrupt" in said


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "1e999", "-" + "9" * 400])
def test_a_number_of_many_digits_is_infinite(tmp_path: Path, number: str) -> None:
    rows = f'{{"step": 1, "loss": {number}}}\n{{"step": 2, "loss": 1.5}}\n'
    run = one(write(tmp_path / "log.jsonl", rows))
    check(run, [1, 2], [float("-inf" if number[0] == "-" else "inf"), 1.5])
    rows = f'{{"step": {number}, "loss": 1.0}}\n{{"step": 2, "loss": 1.5}}\n'
    with pytest.raises(gp.IoError, match="not a finite number"):
        gp.read_traces(write(tmp_path / "log.jsonl", rows))
    row: dict[str, Any] = {"loss": 1.0, "elapsed_time": f"{number.lstrip('-')}:00:00"}
    rows = "".join(json.dumps({"step": i, **row}) + "\n" for i in (1, 2))
    check(one(write(tmp_path / "log.jsonl", rows)), [1, 2], [1, 1])


# The form of each file, and those that refuse it at any depth.
FORMS = {
    "log.jsonl": ("jsonl", ("json", "trainer_state")),
    "log.json": ("json", ("trainer_state",)),
    "trainer_state.json": ("trainer_state", ("jsonl", "text")),
}


@pytest.mark.parametrize("depth", [100, 900, 5_000, 50_000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_nesting_of_any_depth_ends(tmp_path: Path, depth: int, opens: str, closes: str) -> None:
    deep = opens * depth + "1" + closes * depth
    for name, text in {
        "log.jsonl": f'{{"step": 1, "loss": 1, "x": {deep}}}\n',
        "log.json": f'{{"loss": [1, 2, 3], "x": {deep}}}\n',
        "trainer_state.json": f'{{"log_history": [{{"step": 1, "loss": 2, "x": {deep}}}]}}',
    }.items():
        file = write(tmp_path / name / name, text)
        own, others = FORMS[name]
        for form in (None, "jsonl", "json", "trainer_state", "text"):
            said = refusal(file, form)
            assert said is None or name in said
            if form in others:
                assert said is not None
            elif form in (None, own) and depth == 100:
                assert said is None
        # A file that cannot be judged is none of a folder's logs.
        write(file.with_name("sound.csv"), TABLE)
        said = refusal(file.parent)
        if said is None:
            assert "sound.csv" in [run.name for run in gp.read_traces(file.parent)]
        else:
            assert name in said


# -------------------------------------------------------------------------------------- databases


def mlflow_database(file: Path, *, mode: str = "delete", **first: Any) -> sqlite3.Connection:
    """A database of one run and two points, with odd values in the first; still open."""
    row = {"run_uuid": "a", "key": "loss", "value": 2.0, "timestamp": 1000, "step": 1, **first}
    database = sqlite3.connect(file)
    database.execute(f"PRAGMA journal_mode={mode}")
    database.execute("CREATE TABLE runs (run_uuid, lifecycle_stage, start_time)")
    database.execute("INSERT INTO runs VALUES ('a', 'active', 1)")
    database.execute("CREATE TABLE metrics (run_uuid, key, value, timestamp, step, is_nan)")
    insert = "INSERT INTO metrics VALUES (:run_uuid, :key, :value, :timestamp, :step, 0)"
    database.execute(insert, row)
    database.execute("INSERT INTO metrics VALUES ('a', 'loss', 1.0, 2000, 2, 0)")
    database.commit()
    return database


@pytest.mark.parametrize(
    "first",
    [
        {"step": "two"},
        {"key": None},
        {"key": b"\xff"},
        {"value": "x"},
        {"value": b"\x00"},
        {"timestamp": "noon"},
        {"timestamp": None},
        {"step": b"two"},
    ],
    ids=str,
)
def test_odd_values_in_a_database_are_refused(tmp_path: Path, first: dict[str, Any]) -> None:
    mlflow_database(tmp_path / "mlflow.db", **first).close()
    with pytest.raises(gp.IoError, match=r"mlflow\.db: not a database of MLflow"):
        gp.read_traces(tmp_path / "mlflow.db")


def test_a_schema_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    mlflow_database(file).close()
    file.write_bytes(
        file.read_bytes().replace(b"CREATE TABLE metrics", b"CREATE TABLE metr\xff\xfes")
    )
    with pytest.raises(gp.IoError, match=r"mlflow\.db: not a database of MLflow"):
        gp.read_traces(file)


def test_reading_a_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """Write-ahead databases closed, open elsewhere, and of a process that was killed."""
    file = tmp_path / "closed" / "mlflow.db"
    file.parent.mkdir()
    database = mlflow_database(file, mode="wal")
    check(one(file), [1, 2], [2, 1])  # also what lies in the -wal alone
    killed = tmp_path / "killed" / "mlflow.db"
    killed.parent.mkdir()
    for end in ("", "-wal"):
        killed.with_name(f"mlflow.db{end}").write_bytes(Path(f"{file}{end}").read_bytes())
    database.close()
    for one_of_them in (file, killed):
        before = {each: each.read_bytes() for each in one_of_them.parent.iterdir()}
        check(one(one_of_them), [1, 2], [2, 1])
        assert {each: each.read_bytes() for each in one_of_them.parent.iterdir()} == before


# ----------------------------------------------------------------------------------- Arrow, names


@pytest.mark.parametrize(
    "name", ["list run", "record run", "late run", "late timestamp", "list step", "null loss"]
)
def test_columns_of_odd_types_are_refused(tmp_path: Path, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    kind, _, column = name.partition(" ")
    odd = {
        "list": pa.array([[1], [2]]),
        "record": pa.array([{"a": 1}, {"a": 2}]),
        "late": pa.array([2**62, 2**62], pa.timestamp("s")),
        "null": pa.nulls(2),
    }[kind]
    frame = pa.table({"step": [1, 2], "loss": [2.0, 1.0]} | {column: odd})
    with pytest.raises(gp.IoError):
        gp.read_traces(frame)
    if kind != "late":  # which Parquet refuses itself
        import pyarrow.parquet as pq

        pq.write_table(frame, tmp_path / "log.parquet")
        with pytest.raises(gp.IoError, match=r"log\.parquet"):
            gp.read_traces(tmp_path / "log.parquet")


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "log.csv", LONG)
    for path, options in (
        (file, {"metric": "\ud800"}),
        (file, {"format": "\ud800"}),
        (file, {"pattern": "\ud800"}),
        ("a\ud800", {}),
        ("a\0b", {}),
    ):
        with pytest.raises(gp.InputError):
            gp.read_traces(path, **options)
    with pytest.raises(gp.InputError, match="metric is 3, expected text"):
        gp.read_traces(file, metric=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("head", ["run,step,loss", "curve,step,value"])
def test_names_in_latin_1_that_differ_by_a_byte_are_of_two_runs(tmp_path: Path, head: str) -> None:
    rows = "".join(f"{name},{i},{3 / i}\n" for name in ("é", "è") for i in range(1, 9))
    (tmp_path / "a.csv").write_bytes(f"{head}\n{rows}".encode("latin-1"))
    assert [run.name for run in gp.read_traces(tmp_path / "a.csv")] == ["é", "è"]


def test_a_name_of_bytes_that_are_no_text_is_read_and_named(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv"))
    write(file, TABLE)
    run = one(file)
    assert (len(run), run.name) == (499, "\\udcff.csv")
    assert gp.reach(run, 0.001, budget=900).budget == 900  # the core takes UTF-8 alone
    file.write_text("step,loss\n1,x\n")
    with pytest.raises(gp.IoError, match="'x' is not a number"):
        gp.read_traces(file)


@pytest.mark.parametrize(
    "url",
    [
        *("http://user:SECRET@[::1/", "http://user:SECRET@host:99999999/?key=SECRET"),
        *("http://user:SECRET/x@host/", "http://user:SECRET#x@host/", "http://user:SECRET?x@host/"),
        *(
            "http://user:SECRET@h\u2100/",
            "http://user:a SECRET@host/",
            "http://[user:SECRET@h]/",
            "s3://user:SECRET@host/x",
        ),
    ],
)
def test_no_refused_address_tells_its_login(url: str) -> None:
    with pytest.raises(gp.InputError) as refused:
        gp.read_traces(url)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        *("http://user:SE@CRET@{}", "HTTP://user:SECRET@{}", "http://{}?key=a:SECRET"),
        *(f"http://user:{'SECRET' * 200}@{{}}", f"http://{{}}?{'x' * 1200}=SECRET&to=a@b"),
    ],
    ids=["an @", "capitals", "a colon", "a long login", "a long query"],
)
def test_no_server_that_refuses_tells_the_login(given: str) -> None:
    with pytest.raises(gp.IoError, match="Connection refused") as refused:
        gp.read_traces(given.format("127.0.0.1:9/"))
    assert "CRET" not in str(refused.value)


def test_a_folder_with_the_name_of_an_address_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    write(tmp_path / "s3:" / "a.csv", "step,loss\n1,2\n2,1\n")
    check(one("s3://a.csv"), [1, 2], [2, 1])


@pytest.mark.parametrize(
    "table",
    ['{"v100": 3}', '{"v100": {"x": 1}}', "[1]", "{", "9" * 5000, '{"v100": {"(\'A\', 1)": 3}}'],
)
def test_odd_tables_of_throughputs_are_refused(tmp_path: Path, table: str) -> None:
    jobs = write(tmp_path / "jobs.trace", "A\tx\ty\tz\t0\t500\t1\t1\t-1.0\t60\n")
    rates = write(tmp_path / "rates.json", table)
    with pytest.raises(gp.IoError, match=r"rates\.json"):
        gp.Workload.from_gavel(jobs, rates, cluster={"v100": 4})
    write(rates, '{"v100": {"(\'A\', 1)": {"null": 5.0}}}')
    assert len(gp.Workload.from_gavel(jobs, rates, cluster={"v100": 4})) == 1
    for odd in ("", "x\t" * 9 + "x\n", "A\tx\ty\tz\t0\t500\t1e9\t1\t-1.0\tsoon\n", "\xff\n"):
        write(jobs, odd)
        with pytest.raises(gp.IoError, match=r"jobs\.trace"):
            gp.Workload.from_gavel(jobs, rates, cluster={"v100": 4})
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(b"job,submit_s\n" * 99)[:-9])
    with pytest.raises(gp.IoError, match=r"jobs\.csv\.gz"):
        gp.Workload.from_gavel(packed, rates, cluster={"v100": 4})


JOB = "job,submit_s,gpus,model,batch,total_steps"
RATE = "gpu_type,consolidated,model,batch,gpus,other_model,other_batch,other_gpus,steps_per_s"
BESIDE = ",other_steps_per_s"


@pytest.mark.parametrize(
    ("jobs", "rates", "sentence"),
    [
        ("1,soon,1,A,,9", "v100,1,A,,1,,,,2,", r"jobs\.csv:2: submit_s is 'soon', expected a num"),
        ("1,0,x,A,,9", "v100,1,A,,x,,,,2,", r"jobs\.csv:2: gpus is 'x', expected a whole number"),
        ("1,0,1,A,,nan", "v100,1,A,,1,,,,2,", r"jobs\.csv:2: total_steps is 'nan', expected a num"),
        ("1,0,1,B,,9", "v100,1,A,,1,,,,2,", r"jobs\.csv:2: job 1 has no rate in the throughputs"),
        ("1,0,1,A,,9", "\nv100,1,A,,1,,,,x,", r"rates\.csv:3: steps_per_s is 'x', expected a num"),
        ("1,0,1,A,,9", "v100,1,A,,1,,,,2", r"rates\.csv:2: 9 fields where the header has 10"),
    ],
)
def test_a_bad_cell_of_a_trace_with_rates_is_named_by_file_and_line(
    tmp_path: Path, jobs: str, rates: str, sentence: str
) -> None:
    trace = write(tmp_path / "jobs.csv", f"{JOB}\n{jobs}\n")
    table = write(tmp_path / "rates.csv", f"{RATE}{BESIDE}\n{rates}\n")
    with pytest.raises(gp.IoError, match=sentence):
        gp.Workload.from_gavel(trace, table, cluster={"v100": 4})


def test_a_column_that_a_table_of_rates_lacks_is_named(tmp_path: Path) -> None:
    trace = write(tmp_path / "jobs.csv", f"{JOB}\n1,0,1,A,,9\n")
    table = write(tmp_path / "rates.csv", "gpu_type,consolidated,model,batch,gpus\nv100,1,A,,1\n")
    with pytest.raises(gp.IoError, match=r"rates\.csv:1: no column 'other_model'"):
        gp.Workload.from_gavel(trace, table, cluster={"v100": 4})
