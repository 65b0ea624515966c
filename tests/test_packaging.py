"""What is published beside the code agrees with it: recipe, citation, paper, workflows."""

import re
import tomllib
from pathlib import Path

import pytest

import fairpca

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_recipe_needs_what_the_package_needs(project):
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == fairpca.__version__
    wanted = {f"python {project['requires-python']}"}
    wanted |= {each.replace(">=", " >=") for each in project["dependencies"]}
    assert set(recipe["requirements"]["run"]) == wanted
    ((name, target),) = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    floors = {each for extra in project["optional-dependencies"].values() for each in extra}
    for constraint in recipe["requirements"]["run_constraints"]:
        assert constraint.replace("-base", "").replace(" ", "") in floors
    for file in recipe["about"]["license_file"]:
        assert (ROOT / file).is_file()


def test_the_workflow_runs_what_runs_here_with_the_versions_that_are_named(project):
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    (job,) = jobs.values()
    assert job["steps"][-1]["run"] == ".ci/run"
    prefix = "Programming Language :: Python :: 3."
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if each.startswith(prefix)]
    assert job["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"


def test_the_paper_cites_what_its_bibliography_has_and_repeats_true_numbers():
    paper = " ".join((ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split())
    bibliography = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),$", bibliography, re.MULTILINE)
    assert sorted(entries) == sorted(set(re.findall(r"@(\w+)", paper)))
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    women, men = re.findall(r"^\w+ +[\d,]+ +([\d.]+) +([\d.]+) +([\d.]+)$", home, re.MULTILINE)
    assert f"women lose {women[0]} % of their variance with PCA" in paper
    assert f"would lose {women[2]} % with a PCA of their own" in paper
    assert f"they lose {women[1]} %, and men {men[1]} % in place of {men[0]} %" in paper
    page = (ROOT / "docs" / "guide" / "certificate.md").read_text(encoding="utf-8")
    counts = "59 optimal, 14 bounded with gaps from 3e-6 to 2.8 %, 19 proven infeasible"
    assert counts in " ".join(page.split())
    assert "59 are solved to optimality, 14 end with a gap of at most 2.8 %, and 19 are" in paper
