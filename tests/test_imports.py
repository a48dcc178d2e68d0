"""Imports go one way and stay light; no draw comes from a generator that somebody else may turn."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deadheat

SOURCE = Path(deadheat.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Functions of numpy.random that do not touch the global state.
OWN_STATE = {"Generator", "Philox", "PCG64", "SeedSequence", "BitGenerator"}
# Names of torch that draw from, or set, its global generator.
TORCH_DRAWS = {"manual_seed", "seed", "multinomial", "bernoulli", "poisson", "normal", "randperm"}
# Methods of tensors that fill them from the global generator.
TENSOR_FILLS = {
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
}


def test_the_import_contract_holds() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed")
    root = SOURCE.parents[1]
    done = subprocess.run([command, "--no-cache"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Imports go one way KEPT" in done.stdout


def lazy_imports(tree: ast.AST) -> Iterator[str]:
    """Imports of this package inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("deadheat")):
                    yield f"line {node.lineno}"
                if isinstance(node, ast.Import) and any(name.name.startswith("deadheat") for name in node.names):
                    yield f"line {node.lineno}"


def global_draws(tree: ast.AST) -> Iterator[str]:
    """Uses of a global generator, and imports of the module that is nothing else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name.split(".")[0] == "random" for name in node.names):
            yield f"line {node.lineno}: import random"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "random":
            yield f"line {node.lineno}: from random"
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            yield from (f"line {node.lineno}: {n.name}" for n in node.names if n.name not in OWN_STATE)
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            owner, _, name = dotted.rpartition(".")
            of_torch = owner == "torch" and name != "random" and (name in TORCH_DRAWS or name.startswith("rand"))
            seeds = owner in {"torch.cuda", "torch.random", "torch.mps"} and name in {"manual_seed", "manual_seed_all"}
            of_numpy = owner in {"np.random", "numpy.random"} and name not in OWN_STATE
            if of_torch or seeds or of_numpy or name in TENSOR_FILLS:
                yield f"line {node.lineno}: {dotted}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import random", 1),
        ("from random import choice", 1),
        ("import numpy as np\nnp.random.seed(1)\nnp.random.default_rng()", 2),
        ("import torch\ntorch.manual_seed(1)\ntorch.rand(3)\ntorch.randn_like(x)\nx.uniform_()", 4),
        ("import numpy as np\nnp.random.Generator(np.random.Philox(key=1))", 0),
        ("from deadheat.sampling.keys import uniforms\nuniforms(1, 2)", 0),
    ],
)
def test_the_scan_sees_what_it_is_for(text: str, wanted: int) -> None:
    assert len(list(global_draws(ast.parse(text)))) == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_global_generator_is_used(path: Path) -> None:
    assert list(global_draws(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "path", [p for p in FILES if "cli" not in p.relative_to(SOURCE).parts], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_no_function_imports_this_package(path: Path) -> None:
    assert list(lazy_imports(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "module",
    [
        "deadheat",
        "deadheat.types",
        "deadheat.errors",
        "deadheat.sampling.keys",
        "deadheat.archive",
        "deadheat.credit",
        "deadheat.stats",
        "deadheat.cli",
    ],
)
def test_who_only_wants_a_verdict_on_two_files_pays_for_neither_torch_nor_transformers(module: str) -> None:
    script = f"import sys, {module}; print(sorted({{'torch', 'transformers', 'peft'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
