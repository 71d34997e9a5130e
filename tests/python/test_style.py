# SPDX-License-Identifier: Apache-2.0
"""Habits of the sources: short functions, plain words, narrow documents, the same names twice.

Each checker is a function of a text, so the tests below also plant every violation that it should
find: a checker that finds nothing is worth nothing.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import glidepath as gp
from glidepath.gym import SchedulingEnv

LONGEST = 80  # lines of a function
# Longer functions, each with the reason why it is not split.
LONG_FUNCTIONS: dict[str, str] = {
    "python/glidepath/_bench/accuracy/__init__.py:accuracy": "the documentation of its arguments",
    "python/glidepath/_plan.py:plan": "the documentation of its arguments",
    "python/glidepath/_simulate.py:simulate": "the documentation of its arguments",
    "python/glidepath/cli/_simulate.py:simulate": "the declaration of its flags",
    "tests/python/test_slurm_safety.py:test_never_touches_a_job_that_did_not_opt_in": "its world",
}


def tracked(root: Path, *patterns: str) -> list[str]:
    """Files of the repository that match; the test is skipped outside of a checkout."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for path in listing.stdout.splitlines() if (root / path).is_file()]


# ------------------------------------------------------------------------------------- functions


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each function, signature and docstring included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def without_strings(line: str) -> str:
    """A line of C++ without its strings, characters and comment."""
    return re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*', "", line)


def cpp_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each function body in C++ as clang-format writes it.

    A body begins with a line that ends in `{`, has a `)` before it and stands at column 0 or 2, or
    goes on a signature that does; it ends with the matching `}`.
    """
    lines = [without_strings(line) for line in text.splitlines()]
    number = 0
    while number < len(lines):
        line = lines[number]
        if not re.search(r"\)[^;{}]*\{\s*$", line) or is_statement(line):
            number += 1
            continue
        first = start_of_signature(lines, number)
        joined = " ".join(lines[first : number + 1])
        indent = len(lines[first]) - len(lines[first].lstrip())
        name = re.search(r"([\w:~]+|operator\S+)\s*\(", joined)
        if indent > 2 or name is None or is_statement(lines[first]):
            number += 1
            continue
        depth, end = 0, number
        while True:
            depth += lines[end].count("{") - lines[end].count("}")
            if depth <= 0 or end + 1 == len(lines):
                break
            end += 1
        yield name[1], max(0, end - number - 1)
        number += 1  # a class within a function, or a member of a class within the body


def start_of_signature(lines: list[str], last: int) -> int:
    """Line on which the signature begins whose last line is given; skips a list of members."""
    first, closed = last, 0
    while first > 0:
        closed += lines[first].count(")") - lines[first].count("(")
        if closed <= 0 and not re.match(r"\s*[:,]", lines[first]):
            break
        first -= 1
    return first


def is_statement(line: str) -> bool:
    return bool(re.match(r"\s*(?:\}|if|for|while|switch|do|else|try|catch|return)\b|\s*\}", line))


def too_long(path: str, text: str) -> Iterator[str]:
    functions = python_functions if path.endswith(".py") else cpp_functions
    for name, lines in functions(text):
        where = f"{path}:{name}"
        if lines > LONGEST and where not in LONG_FUNCTIONS:
            yield f"{where} has {lines} lines"


def test_no_function_is_long(root: Path) -> None:
    paths = tracked(root, "*.py", "*.cpp", "*.hpp")
    assert len(paths) > 300
    found = [line for path in paths for line in too_long(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def test_the_table_of_long_functions_names_long_functions(root: Path) -> None:
    for where in LONG_FUNCTIONS:
        path, _, name = where.rpartition(":")
        functions = python_functions if path.endswith(".py") else cpp_functions
        lengths = dict(functions((root / path).read_text()))
        assert lengths.get(name, 0) > LONGEST, f"{where} is short by now: take it off the table"


BODY = "  x += 1;  // } in a comment\n" * 81


@pytest.mark.parametrize(
    "signature",
    [
        "int plain(int x) {\n{body}}\n",
        "namespace {\nPlan Class::method(const std::vector<int>& x,\n"
        "                   int y) const {\n{body}}\n}  // namespace\n",
        "struct S {\n  double member(char c = '{') const {\n{body}  }\n};\n",
        "Klass::Klass(int x)\n    : x_(x) {\n{body}}\n",
        "template <class T>\nauto deduced(T x) -> int {\n  for (;;) {\n{body}  }\n}\n",
    ],
)
def test_a_long_function_of_cpp_is_found(signature: str) -> None:
    assert list(too_long("src/a.cpp", signature.replace("{body}", BODY)))
    short = signature.replace("{body}", "  x += 1;\n" * 60)
    assert not list(too_long("src/a.cpp", short))


def test_a_long_function_of_python_is_found() -> None:
    long = "def f(\n    x,\n):\n" + "    x += 1\n" * 78
    assert list(too_long("a.py", long)) == ["a.py:f has 81 lines"]
    documented = 'def f(x):\n    """Do.\n' + "\n" * 75 + '    """\n' + "    x += 1\n" * 2
    assert not list(too_long("a.py", documented))


def test_a_long_class_or_namespace_is_no_function() -> None:
    lines = "  int a = f(1);\n" * 90
    for opening in ("namespace a {", "struct S {", "enum class E {", "const std::map<int, int> m{"):
        assert not list(too_long("src/a.cpp", f"{opening}\n{lines}}};\n"))


# ----------------------------------------------------------------------------------------- words

# What the product does not say: who wanted what of it, and sentences that need a second reading.
FORBIDDEN = re.compile(
    r"\b(?:(?:is|are|was|were) (?:told|asked)|says? nothing|vouch\w*|asked[ -]for|aimed at|met"
    r"|missed)\b",
    re.IGNORECASE,
)


WRITTEN = (
    *(".md", ".hpp", ".cpp", ".inl", ".h", ".c", ".py", ".pyi", ".ipynb", ".sh", ".toml", ".txt"),
    *(".yaml", ".cmake", "Makefile"),
)
ELSEWHERE = ("docs/notebook/", "data/", "tests/")  # what others wrote, what was tried


def forbidden_words(path: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        found = FORBIDDEN.search(line)
        if found:
            yield f"{path}:{number}: {found[0]!r}"


def vague_docstrings(path: str, text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            document = ast.get_docstring(node) or ""
            for line in document.splitlines():
                if re.match(r"\s*Of\b", line):
                    yield f"{path}: {getattr(node, 'name', 'module')}: {line.strip()[:60]!r}"


def vague_comments(path: str, text: str) -> Iterator[str]:
    """Sentences of doc comments that begin with Of: the thing has no noun."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(?:///|/\*\*) Of\b", line) and not before.startswith("//"):
            yield f"{path}:{number}: {line.strip()[:60]!r}"
        before = line.strip()


def vague_constants(path: str, text: str) -> Iterator[str]:
    words = (
        "Most|Doubt|Half|Steep|Alike|Far|Sure|Some|Many|Late|Poor|Known|Enough|High|Fewest|Mixed"
        "|News|Soon|Left|Even|Searched|Broken|Below|Above|Shown|Cached|Widest|Deepest|More|Grown"
        "|Rounded|Agreeing|Missing|Infinite|Farthest|Noisy|Trained|Named|Unknown|Within|Meant"
    )
    adjectives = rf"\b(?:k(?:{words})|_(?:{words.upper()}|BEFORE|OWN|LONG|FURTHEST|FASTEST))\b"
    for found in re.finditer(adjectives, text):
        yield f"{path}: {found[0]} is an adjective; name the noun"


def test_no_text_has_a_forbidden_word(root: Path) -> None:
    paths = tracked(root)
    texts = [path for path in paths if path.endswith(WRITTEN) and not path.startswith(ELSEWHERE)]
    kept = [path for path in texts if path not in ("tests/python/test_style.py", "CHANGELOG.md")]
    found = [line for path in kept for line in forbidden_words(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def test_docstrings_name_the_noun(root: Path) -> None:
    paths = tracked(root, "python/*.py", "python/*.pyi", "tests/*.py", "bench/*.py", "scripts/*.py")
    found = [line for path in paths for line in vague_docstrings(path, (root / path).read_text())]
    for path in tracked(root, "*.h", "*.hpp", "*.cpp", "*.inl"):
        found += vague_comments(path, (root / path).read_text())
    assert not found, "\n".join(found)


def test_constants_name_the_noun(root: Path) -> None:
    paths = tracked(root, "src/*.cpp", "src/*.hpp", "src/*.inl", "include/*.hpp", "python/*.py")
    found = [line for path in paths for line in vague_constants(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def other_refusals(path: str, text: str) -> Iterator[str]:
    """Find refusals of a name that are not "X is 'V', expected one of ..."."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"\bunknown \w+(?: \w+)* ['{]|, known(?: are|:) [\"{]", line)
        if found:
            yield f"{path}:{number}: {found[0]!r}"


def test_refusals_of_a_name_say_what_was_expected(root: Path) -> None:
    paths = tracked(root, "src/*.cpp", "python/*.py", "python/*.cpp", "python/*.hpp")
    found = [line for path in paths for line in other_refusals(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def test_words_that_are_planted_are_found() -> None:
    assert list(forbidden_words("a.md", "fine\nthe target was met\n")) == ["a.md:2: 'met'"]
    assert list(forbidden_words("a.md", "instead of the 0.055 asked for"))
    assert not list(forbidden_words("a.md", "the method, a metric, submitted, task"))
    assert list(vague_docstrings("a.py", 'def f():\n    """Of the forecast."""\n'))
    planted = 'def f():\n    """Do.\n\n    status : str\n        Of the forecast.\n    """\n'
    assert list(vague_docstrings("a.py", planted))
    assert not list(vague_docstrings("a.py", '"""Offsets."""\n'))
    assert list(vague_comments("a.hpp", "int x;\n  /// Of each GPU.\nint y;\n"))
    assert not list(vague_comments("a.hpp", "/// The share\n/// Of each GPU.\n"))
    assert list(vague_constants("a.cpp", "constexpr int kMost = 3;"))
    assert not list(vague_constants("a.cpp", "constexpr int kMostComponents = 3;"))
    assert list(other_refusals("a.cpp", """refuse("plan: unknown objective '", text, "'");"""))
    assert list(other_refusals("a.py", 'f"no level {p:g}, known: {known}"'))
    assert not list(other_refusals("a.py", 'f"policy is {name!r}, expected one of {known}"'))
    assert list(vague_constants("a.py", "_LONG = 3"))
    assert not list(vague_constants("a.py", "_LONG_COLUMNS = 3"))


# ------------------------------------------------------------------------------------- documents

WIDEST = 140
LINES = {"README.md": 110, "docs/method/": 200}


def too_large(path: str, text: str) -> Iterator[str]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > WIDEST:
            yield f"{path}:{number}: {len(line)} characters"
    for start, most in LINES.items():
        if path.startswith(start) and len(lines) > most:
            yield f"{path}: {len(lines)} lines, at most {most}"


def test_documents_can_be_read_in_one_sitting(root: Path) -> None:
    paths = tracked(root, "*.md")
    assert "README.md" in paths
    found = [line for path in paths for line in too_large(path, (root / path).read_text())]
    assert not found, "\n".join(found)


def test_a_large_document_is_found() -> None:
    assert list(too_large("docs/a.md", "x" * 141)) == ["docs/a.md:1: 141 characters"]
    assert list(too_large("README.md", "x\n" * 111)) == ["README.md: 111 lines, at most 110"]
    assert list(too_large("docs/method/a.md", "x\n" * 201))
    assert not list(too_large("docs/a.md", "x\n" * 201))


# ------------------------------------------------------------------------- names in two languages

# Public names of one language only, by their reason.
CPP_ONLY_BY_REASON = {
    "a dict in Python": (*("Relevance", "Setting", "Settings"),),
    "a view of borrowed columns; Python passes the object or its columns": (
        *("CurvesView", "RoundView", "TraceView"),
    ),
    "what a log says of its run; in Python its verbs, pilot and pruner ask": ("Ruling", "judge"),
    "an array; Python has NumPy": (
        *("BasicRowsView", "EigenRows", "MutableRowsView", "Rows", "RowsView"),
        *("as_eigen", "as_rows"),
    ),
    "an enum; Python has strings": (
        *("Combine", "Direction", "Family", "FitStatus", "ForecastStatus", "Forecasts"),
        *("JobOutcome", "Objective", "Preference", "ReachedBy", "Robust", "ScheduleLawKind"),
        *("Sharing", "Solver", "Verdict"),
    ),
    "names of enumerators; Python has strings": (
        *("direction_named", "family_named", "name", "objective_named", "preference_named"),
        *("reached_by_named", "robust_named", "schedule_law_named", "sharing_named"),
        "solver_named",
    ),
    "options of a function; Python has keywords": (
        *("CleanOptions", "EnvironmentOptions", "Failures", "FitOptions", "ForecastOptions"),
        *("NodeSleep", "PlacementOptions", "PlanDynamics", "PlanLimits", "PlanOptions"),
        *("PodOptions", "Quota"),
        *("ReadOptions", "RoundOptions", "RunLimits", "ScheduleEnds", "SimulationOptions"),
        *("BelievedSteps", "StartOptions", "WatchOptions", "WeightedObjective", "WsdShape"),
    ),
    "moments of simulations to score; Python has glidepath bench starts": (
        *("Moment", "moments_of"),
    ),
    "threads and instruction set; Python has threads=": (
        *("Execution", "Interruptible", "Isa", "available_threads", "best_isa"),
    ),
    "a part of a result; Python has columns of an array or a dict": (
        *("ForecastInterval", "JobColumns", "Reason", "TierAccount", "TimelineRow"),
        *("Gang", "Phase", "UserAccount", "WatchState", "WorkloadJob"),
    ),
    "a method in Python": (
        *("curve_quantile", "evaluate", "interval", "lower_bound_jct_s", "make_tier", "predict"),
        *("prob_below", "quantile", "statistical_efficiency", "step_seconds", "until"),
        *("utilization", "watts"),
    ),
    "the rule behind reached_by=, in numbers": ("level_window",),
    "Fit.params in Python": ("Curve", "parameter_names"),
    "keys of Scaling.terms in Python": ("scaling_term",),
    "POLICIES in Python": ("policy_names",),
    "Tier.of and catalogue() in Python": ("gpu_named",),
    "the default of budget= in Python": ("open_budget",),
    "the default of levels= in Python": ("default_levels",),
    "text of a table in Python": ("ForecastConstants", "read_constants"),
    "compare shares forecasts by itself in Python": ("ForecastMemo", "make_forecast_memo"),
    "Python checks when an object is made": ("validate",),
    "one format of read_traces": ("read_long_csv",),
    "Workload.from_trace and Workload.write_jobs in Python": ("workload_from_trace", "write_jobs"),
    "glidepath.gym in Python": ("Environment",),
    "a function; Python has callables": ("Policy",),
}
CPP_ONLY = {name: why for why, names in CPP_ONLY_BY_REASON.items() for name in names}
PYTHON_ONLY = {
    "Comparison": "a table of simulations",
    "Follow": "only Python follows a log",
    "MetricInfo": "what metrics_of lists",
    "POLICIES": "policy_names() in C++",
    "VERDICTS": "the enumerators of Verdict in C++",
    "bench": "a module: C++ has no callables to score",
    "compare": "a table of simulations",
    "Metrics": "only Python reads what monitors write",
    "metrics_of": "for the command line, which lists the metrics of a log",
    "read_metrics": "only Python reads what monitors write",
    "StepProfile": "only Python reads what profilers write",
    "read_profile": "only Python reads what profilers write",
}
# Members of a type that both languages have, by the type.
CPP_ONLY_MEMBERS: dict[str, set[str]] = {
    "Fit": {"curve", "standard_error"},  # params and stderr, by name
    "FitBatch": {"parameters"},  # params, by name
    "Forecast": {"law"},  # opaque
    "ForecastBatch": {"quantile_rows"},  # an index of the array
    "Job": {"observed"},  # observed_step and observed_loss, owned
    "PastRuns": {"restored", "unlearned"},  # from_dict; a list instead of PastRuns
    "Reach": {"quantile_if_reached"},  # quantile(p, if_reached=True)
    "Scaling": {"kTerms"},  # len(terms)
    "Schedule": {"validate"},  # checked when it is made
    "ScheduleLaw": {  # params, by name
        *("drop", "floor", "memory", "power", "rate", "scale", "shape", "speed", "warmup"),
    },
    "Trace": {"view"},  # Python passes the trace
    "Watch": {"options", "restore", "state"},  # to_dict and from_dict
}
PICTURES_TABLES_JSON = {"plot", "to_pandas", "to_dict", "from_dict", "to_text"}
PYTHON_ONLY_MEMBERS: dict[str, set[str]] = {
    "AcceleratorChoice": {"tier"},  # its name; C++ has tiers[option.tier]
    "Fit": {"family", "params", "stderr"},  # of the curve, by name
    "FitBatch": {"params"},  # parameters, by name
    "Job": {"observed_loss", "observed_step", "with_remaining"},  # observed; a copy with a forecast
    "PastRuns": {"without"},  # some runs; C++ makes another from runs()
    "Plan": {"tiers"},  # plot() draws them
    "Schedule": {"infer"},  # shapes of schedules that training tools have
    "ScheduleLaw": {"params"},  # members in C++
    "Simulation": {"jct_cdf", "metrics"},  # for pictures and tables
    "Tier": {"of"},  # make_tier
    "Watch": {"past"},  # options().past
    "Workload": {"from_gavel", "from_trace"},  # a format of others; workload_from_trace
}
# Parameters of a C++ function that Python calls otherwise.
CPP_ONLY_PARAMETERS: dict[str, set[str]] = {
    "Reach.prob_by": {"at_step"},  # step is a member
    "Schedule.at": {"at_step"},  # step is a member
    "clean": {"raw"},  # a Trace or columns in Python
    "evaluate_batch": {"curves"},  # family and params in Python
    "fit_batch": {"traces"},  # the first argument of either kind in Python
    "fit_scaling": {"measured"},  # columns in Python
    "shared_speeds": {"tier"},  # gpu and gpu_memory_gb in Python
    "solve_round": {"round"},  # columns in Python
}
# Structs of options: Python has their members as keywords.
STRUCTS = {"options", "execution", "limits", "ends", "shape"}
# Which functions of Python have the members of a struct of options as keywords.
OPTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "CleanOptions": (gp.clean,),
    "EnvironmentOptions": (SchedulingEnv,),
    "Execution": (
        *(gp.fit_batch, gp.forecast_batch, gp.reach_batch, gp.evaluate_batch, gp.PastRuns),
        *(gp.solve_round, gp.start_times),
    ),
    "FitOptions": (gp.fit, gp.fit_batch),
    "ForecastOptions": (
        *(gp.best_so_far, gp.forecast, gp.forecast_batch, gp.reach, gp.reach_batch),
    ),
    "PlacementOptions": (gp.options_of,),
    "PlanDynamics": (gp.plan,),
    "PlanLimits": (gp.plan, gp.violations),
    "PlanOptions": (gp.plan,),
    "PodOptions": (gp.place_pods,),
    "ReadOptions": (gp.read_traces,),
    "RoundOptions": (gp.solve_round,),
    "RoundView": (gp.solve_round,),
    "RunLimits": (gp.choose_accelerator,),
    "ScheduleEnds": (gp.Schedule.cosine, gp.Schedule.linear),
    "SimulationOptions": (gp.simulate,),
    "StartOptions": (gp.start_times,),
    "WatchOptions": (gp.Watch,),
    "WsdShape": (gp.Schedule.wsd,),
}
# Parameters of a Python function that C++ has otherwise.
PYTHON_ONLY_PARAMETERS: dict[str, set[str]] = {
    "Reach.prob_by": {"step"},  # at_step, as step is a member
    "Reach.quantile": {"if_reached"},  # quantile_if_reached
    "Schedule.at": {"step"},  # at_step, as step is a member
    "best_batch": {"limits"},  # the same, which STRUCTS leaves out
    "clean": {  # a Trace has them
        *("direction", "loss", "lr", "metric", "name", "planned_steps", "step", "wall_seconds"),
    },
    "evaluate_batch": {"family", "params"},  # of CurvesView
    "fit": {"weight"},  # of TraceView
    "fit_batch": {"weight"},  # of TraceView
    "fit_scaling": {"batch_per_gpu", "gpus", "nodes", "seconds"},  # of StepTime
    "plan": {"objective"},  # objectives and combine
    "read_traces": {"pattern"},  # a regular expression of Python, with named groups
    "shared_speeds": {"gpu"},  # of Tier
}
CPP_ONLY_OPTIONS: dict[str, set[str]] = {
    "Execution": {"isa"},  # of tests; the fastest that the processor has
    "PlanOptions": {"combine", "dynamics", "limits", "objectives"},  # objective=, and flat
    "SimulationOptions": {"memo"},  # compare() shares one between its runs
}


def cpp_names(text: str) -> set[str]:
    """Types and functions that a header declares in namespace glidepath, without detail."""
    text = re.sub(r"^namespace (?:detail|\w+::detail) \{.*?^\}", "", text, flags=re.S | re.M)
    text = "\n".join(without_strings(line) for line in text.splitlines())
    types = re.findall(r"^(?:enum class|struct|class) (?:\[\[\w+\]\] )?(\w+)", text, re.M)
    aliases = re.findall(r"^using (\w+) =", text, re.M)
    functions = re.findall(
        r"^(?!using|namespace|struct|class|enum|template|#|//|static_assert)(?:\[\[nodiscard\]\] )?"
        r"(?:inline |constexpr |const )*[\w:]+(?:<[^;()]*>)?[&* ]+(\w+)\(",
        text,
        re.M,
    )
    return {*types, *aliases, *functions} - {"operator"}


def cpp_types(text: str) -> dict[str, str]:
    """Public part of the body of each type that a header declares, without comments."""
    text = "\n".join(without_strings(line) for line in text.splitlines())
    bodies = re.findall(r"^(?:struct|class) (\w+) \{\n(.*?)^\};", text, re.S | re.M)
    return {name: body.partition("\n private:")[0] for name, body in bodies}


def statements(body: str) -> Iterator[str]:
    """The declarations of a body, each on one line, without initializers and inline code."""
    body = re.sub(r"^ \w+:$", "", body, flags=re.M)
    while re.search(r"\{[^{}]*\}", body):
        body = re.sub(r"(\)\s*(?:const)?\s*(?:noexcept)?)\s*\{[^{}]*\}", r"\1;", body)
        body = re.sub(r"\{[^{}]*\}", "", body)
    for statement in body.split(";"):
        yield " ".join(statement.replace("[[nodiscard]]", "").split())


def at_commas(text: str) -> list[str]:
    """Parts between commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def cpp_members(text: str) -> dict[str, set[str]]:
    """Public members of the types that a header declares, all names of a declaration."""
    found: dict[str, set[str]] = {}
    for name, body in cpp_types(text).items():
        found[name] = set()
        for statement in statements(body):
            while re.search(r"<[^<>]*>", statement):  # also of std::function<void(...)>
                statement = re.sub(r"<[^<>]*>", "", statement)
            skipped = re.match(
                r"(?:using|friend|static_assert|explicit|struct|enum|template)\b", statement
            )
            called = re.match(r"[^=]*?(~?\w+|operator\W+)\s*\(", statement)
            if skipped or not statement:
                continue
            if called is not None:
                found[name].add(called[1])
                continue
            first, *others = at_commas(re.sub(r" = .*?(?=,|$)", "", statement))
            found[name] |= {
                re.sub(r"\[.*", "", each.split()[-1]).lstrip("&*") for each in (first, *others)
            }
        found[name] = {each for each in found[name] if each.isidentifier()} - {name}
    return found


def parameters(declared: str) -> set[str]:
    """Names of the parameters in a list of C++, without structs of options."""
    names = {
        re.sub(r"\s*=.*", "", each).split()[-1].lstrip("&*") for each in at_commas(declared) if each
    }
    return names - STRUCTS


def cpp_parameters(text: str) -> Iterator[tuple[str, set[str]]]:
    """Each function of a header, a method as Type.method, and the names of its parameters."""
    for name, body in cpp_types(text).items():
        for statement in statements(body):
            made = re.match(rf"(?:explicit )?{name}\((.*)\)", statement)
            called = re.match(r"(?:static )?[\w:<>,&* ]+?[&* ](\w+)\((.*)\)", statement)
            if made is not None:
                yield name, parameters(made[1])
            elif called is not None and not statement.startswith("friend"):
                yield f"{name}.{called[1]}", parameters(called[2])
    text = re.sub(r"^namespace (?:detail|\w+::detail) \{.*?^\}", "", text, flags=re.S | re.M)
    text = "\n".join(without_strings(line) for line in text.splitlines())
    free = re.sub(r"^(?:struct|class) .*?^\};", "", text, flags=re.S | re.M)
    for found in re.finditer(
        r"^(?:\[\[nodiscard\]\]\s+)?[\w:<>,&* ]+?[&* ](\w+)\(((?:[^()]|\(\))*)\)", free, re.M
    ):
        yield found[1], parameters(" ".join(found[2].split()))


def python_parameters(function: object) -> set[str] | None:
    """Names of the parameters of a function or class; of the compiled module by its docstring."""
    try:
        return set(inspect.signature(function).parameters) - {"self", "cls"}  # type: ignore[arg-type]
    except ValueError:
        declared = re.match(r"\w+\((.*)\)", (function.__doc__ or "").partition("\n")[0])
    if declared is None:
        return None
    return {part.partition(":")[0].strip("* ") for part in at_commas(declared[1])}


def parameter_differences(
    name: str, cpp: set[str], twin: object, options: set[str] | frozenset[str] = frozenset()
) -> list[str]:
    """Parameters that one language calls otherwise; Python has options as keywords."""
    python = python_parameters(twin)
    if python is None:
        return []
    missing = cpp - python - CPP_ONLY_PARAMETERS.get(name, set())
    more = python - cpp - options - PYTHON_ONLY_PARAMETERS.get(name, set())
    gone = PYTHON_ONLY_PARAMETERS.get(name, set()) - (python - cpp - options)
    return [
        *(f"C++ only: {name}({each})" for each in sorted(missing)),
        *(f"Python only: {name}({each})" for each in sorted(more)),
        *(f"on the table, yet gone: {name}({each})" for each in sorted(gone)),
    ]


def twin_of(name: str) -> object | None:
    """What Python calls by a name of C++, which may be Type.method."""
    found: object | None = gp
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def members_of_python(name: str) -> set[str]:
    own = set(dir(getattr(gp, name))) - set(dir(tuple))
    return {member for member in own if member[0] != "_"}


def differences(cpp: set[str], python: set[str]) -> list[str]:
    """Names of one language that are neither in the other nor on the table of reasons."""
    found = [f"C++ only: {name}" for name in sorted(cpp - python - CPP_ONLY.keys())]
    found += [f"Python only: {name}" for name in sorted(python - cpp - PYTHON_ONLY.keys())]
    excused = CPP_ONLY.keys() & cpp & python | PYTHON_ONLY.keys() & cpp & python
    found += [f"on the table, yet in both: {name}" for name in sorted(excused)]
    gone = (CPP_ONLY.keys() - cpp) | (PYTHON_ONLY.keys() - python)
    return found + [f"on the table, yet gone: {name}" for name in sorted(gone)]


def member_differences(
    name: str, cpp: set[str], python: set[str], functions: set[str] | None = None
) -> list[str]:
    """Members that one language lacks; a function of C++ may be a method in Python."""
    missing = cpp - python - CPP_ONLY_MEMBERS.get(name, set())
    more = python - cpp - (functions or set()) - PICTURES_TABLES_JSON
    more -= PYTHON_ONLY_MEMBERS.get(name, set())
    found = [f"C++ only: {name}.{member}" for member in sorted(missing)]
    found += [f"Python only: {name}.{member}" for member in sorted(more)]
    gone = CPP_ONLY_MEMBERS.get(name, set()) - (cpp - python)
    gone |= PYTHON_ONLY_MEMBERS.get(name, set()) - (python - cpp)
    return found + [f"on the table, yet gone or in both: {name}.{each}" for each in sorted(gone)]


def headers(root: Path) -> list[str]:
    return [path.read_text() for path in sorted((root / "include/glidepath").glob("*.hpp"))]


def test_both_languages_have_the_same_names(root: Path) -> None:
    cpp = set().union(*(cpp_names(text) for text in headers(root)))
    python = {name for name in gp.__all__ if name[0] != "_"}
    found = differences(cpp, python)
    assert not found, "\n".join(found)


def test_both_languages_have_the_same_members(root: Path) -> None:
    types = {name: members for text in headers(root) for name, members in cpp_members(text).items()}
    functions = set().union(*(cpp_names(text) for text in headers(root)))
    shared = sorted(name for name in types if hasattr(gp, name))
    assert len(shared) >= 15
    found = [
        line
        for name in shared
        for line in member_differences(name, types[name], members_of_python(name), functions)
    ]
    assert not found, "\n".join(found)


def test_both_languages_have_the_same_parameters(root: Path) -> None:
    declared: dict[str, set[str]] = {}
    for name, names in (pair for text in headers(root) for pair in cpp_parameters(text)):
        declared.setdefault(name, set()).update(names)  # of all that are called so
    members = {name: each for text in headers(root) for name, each in cpp_members(text).items()}

    def options_of(twin: object) -> set[str]:
        taken = (members[name] for name, twins in OPTIONS.items() if twin in twins)
        return set().union(*taken)

    shared = [(name, names, twin_of(name)) for name, names in declared.items()]
    compared = [(*each, options_of(each[2])) for each in shared if callable(each[2])]
    assert len(compared) >= 40
    found = [line for each in compared for line in parameter_differences(*each)]
    excused = {name for name, *_ in compared}
    tables = CPP_ONLY_PARAMETERS.keys() | PYTHON_ONLY_PARAMETERS.keys()
    found += [f"on the table, yet gone: {name}" for name in tables - excused]
    assert not found, "\n".join(sorted(set(found)))


def option_differences(name: str, cpp: set[str], functions: tuple[Callable[..., Any], ...]) -> str:
    """Members of a struct of options that are no keyword in Python, and not on the table."""
    python: set[str] = set().union(*(python_parameters(each) or set() for each in functions))
    excused = CPP_ONLY_OPTIONS.get(name, set())
    missing, gone = cpp - python - excused, excused - (cpp - python)
    return f"{name}: C++ only {sorted(missing)}, needlessly excused {sorted(gone)}"


def test_both_languages_have_the_same_options(root: Path) -> None:
    structs = {
        name: members
        for text in headers(root)
        for name, members in cpp_members(text).items()
        if name.endswith("Options") or name in OPTIONS
    }
    assert structs.keys() == OPTIONS.keys()
    clean = "C++ only [], needlessly excused []"
    found = [option_differences(name, structs[name], OPTIONS[name]) for name in sorted(structs)]
    assert all(line.endswith(clean) for line in found), "\n".join(found)
    assert not option_differences("FitOptions", {"fresh"}, (gp.fit,)).endswith(clean)


# Arguments of Python whose default is said otherwise.
OTHER_DEFAULTS = {
    "robust": "False for none",
    "horizon_s": "None for 30 days",
    "threads": "1 of solve_round, which takes an Execution{1}",
}
INFINITY = "numeric_limits<double>::infinity()"


def cpp_defaults(body: str) -> dict[str, str]:
    """What the members of a struct are set to, without those that are set by braces."""
    code = "\n".join(line.partition("//")[0] for line in body.splitlines())
    return {name: value.strip() for name, value in re.findall(r"(\w+) =\s+([^,;{}]+)[,;]", code)}


def is_default(text: str, default: object) -> bool:
    """Whether the initializer of a member says what a keyword of Python has by default."""
    if INFINITY in text:
        return default is None or default == (-math.inf if text[0] == "-" else math.inf)
    if text in ("true", "false", "nullptr"):
        return default is {"true": True, "false": False, "nullptr": None}[text]
    if "::" in text:
        return bool(default == text.rpartition("::")[2])
    return bool(default == eval(text, {}))


def test_both_languages_have_the_same_defaults(root: Path) -> None:
    found, compared = [], 0
    for text in headers(root):
        for struct, body in cpp_types(text).items():
            for name, value in cpp_defaults(body).items() if struct in OPTIONS else ():
                for function in OPTIONS[struct]:
                    known = inspect.signature(function).parameters.get(name)
                    if known is None or name in OTHER_DEFAULTS:
                        continue
                    compared += 1
                    if not is_default(value, known.default):
                        found.append(f"{struct}.{name} is {value}, in Python {known.default!r}")
    assert compared >= 60
    assert not found, "\n".join(found)
    assert cpp_defaults("double a = 1e-3, b = 2;  // c = 3;\n int d{};") == {"a": "1e-3", "b": "2"}
    assert is_default("1 << 20", 2**20)
    assert not is_default("Sharing::mps", "mig")


HEADER = """
namespace glidepath {
struct Fit {
  Curve curve{};             ///< fitted (not "kept")
  double sigma = 0, aicc = std::numeric_limits<double>::infinity();
  std::vector<double> steps{}, losses{};
  [[nodiscard]] double quantile(double p) const { return p; }
  [[nodiscard]] const Curve& best(int rank) const noexcept;
};
enum class FitStatus { good };
class Watch {
 public:
  void add(double step, double loss);
 private:
  double state_;
};
[[nodiscard]] Fit fit(const Trace& trace, const FitOptions& options = {});
std::vector<Fit> fit_batch(std::span<const TraceView> traces);
[[nodiscard]] const Gpu& gpu_named(std::string_view text,
                                   const std::vector<Gpu>& known = {});
namespace detail {
void hidden(int x);
}
}  // namespace glidepath
"""


def test_names_of_a_header_are_found() -> None:
    assert cpp_names(HEADER) == {"Fit", "FitStatus", "Watch", "fit", "fit_batch", "gpu_named"}
    members = cpp_members(HEADER)
    assert members["Fit"] == {"curve", "sigma", "aicc", "steps", "losses", "quantile", "best"}
    assert members["Watch"] == {"add"}
    assert "C++ only: fresh" in differences({"fresh"}, set())
    assert "Python only: fresh" in differences(set(), {"fresh"})
    assert member_differences("Widths", {"a", "b"}, {"b"}) == ["C++ only: Widths.a"]
    assert member_differences("Widths", {"b"}, {"a", "b"}) == ["Python only: Widths.a"]
    assert not member_differences("Widths", {"b"}, {"a", "b"}, {"a"})
    taken = dict(cpp_parameters(HEADER))
    assert taken["gpu_named"] == {"text", "known"}
    assert taken["Watch.add"] == {"step", "loss"}
    assert taken["fit"] == {"trace"}

    def gpu_named(name: str, known: object) -> None: ...

    assert parameter_differences("gpu_named", taken["gpu_named"], gpu_named) == [
        "C++ only: gpu_named(text)",
        "Python only: gpu_named(name)",
    ]
    assert not parameter_differences("made", {"trace"}, lambda trace, robust: 0, {"robust"})
