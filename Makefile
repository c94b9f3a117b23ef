# The commands of this book: `make help` lists them.
# PYTHON=/path/to/python3.13 names the Python that .venv is made with, and
# CONSTRAINTS=constraints/colab.txt other versions (CONSTRAINTS= takes the newest).
# TESTS="notebooks/04-place-operations.ipynb tests/test_form.py" has `make test` run these
# alone, and PYTEST_ARGS=-x hands options on to pytest.
.DEFAULT_GOAL := help
.PHONY: help book pdf epub zip test serve lab sync refresh measure machines versions release assignments grade lint constraints clean
RUN := .venv/bin/python -m
TESTS ?= notebooks tests

help: ## list these commands
	@grep -E '^[a-z]+: ## ' Makefile | sed -E 's/^([a-z]+): ## /make \1	/' | expand -t 18

book: ## build the site; all it needs is installed into .venv
	@TASK=book sh tools/setup/bootstrap.sh book
	@$(RUN) tools.site.build

pdf: book ## print the built site as one PDF
	@TASK=pdf sh tools/setup/bootstrap.sh paper
	@$(RUN) tools.paper pdf

epub: ## make an EPUB of the book
	@TASK=epub sh tools/setup/bootstrap.sh paper
	@$(RUN) tools.paper epub

zip: book ## pack the site, to read offline, and the notebooks
	@TASK=zip sh tools/setup/bootstrap.sh paper
	@$(RUN) tools.paper zip

test: ## run all checks: claims first, then lint, the site, tests; one summary
	@TASK=test sh tools/setup/bootstrap.sh all
	@exec $(RUN) tools.checks --tests $(TESTS) -- $(PYTEST_ARGS)

serve: ## show the site and build it again after each change [PORT=8000]
	@TASK=serve sh tools/setup/bootstrap.sh book
	@$(RUN) tools.site.serve $(or $(PORT),8000)

lab: ## open the notebooks in JupyterLab
	@TASK=lab sh tools/setup/bootstrap.sh all
	@$(RUN) jupyterlab notebooks

sync: ## copy snippets, addresses and lists of claims to where they are shown
	@TASK=sync sh tools/setup/bootstrap.sh book
	@$(RUN) tools.notebooks.sync

refresh: ## execute notebooks and store their outputs [NB=05]
	@TASK=refresh sh tools/setup/bootstrap.sh all
	@$(RUN) tools.notebooks.refresh $(if $(NB),'$(NB)')

measure: ## measure this machine for What a GPU would give [ARGS=--quick or --compiler]
	@TASK=measure sh tools/setup/bootstrap.sh all
	@$(RUN) benchmarks $(ARGS)

machines: ## run the claims as other machines would [ROWS="one-core older"]
	@TASK=machines sh tools/setup/bootstrap.sh all
	@exec $(RUN) tools.drift.machines $(ROWS)

versions: ## run the claims with older versions [SETS="keras-3.13 colab" ARGS=--help]
	@TASK=versions sh tools/setup/bootstrap.sh all
	@exec $(RUN) tools.drift.versions $(SETS) $(ARGS)

release: ## keep the claims as those of a release, and say how to publish it: NAME=2026.11
	@test -n "$(NAME)" || { echo "error: which release? Fix: make release NAME=2026.11" >&2; exit 1; }
	@TASK=release sh tools/setup/bootstrap.sh all
	@$(RUN) tools.drift.releases '$(NAME)' $(ARGS)

assignments: ## make the students' notebooks from assignments/masters
	@TASK=assignments sh tools/setup/bootstrap.sh all
	@$(RUN) grading assign

grade: ## grade a folder of notebooks: SUBMISSIONS=folder ASSIGNMENT=2 [ARGS=--help]
	@test -n "$(if $(and $(SUBMISSIONS),$(ASSIGNMENT))$(ARGS),yes)" || { echo "error: what shall be graded? Fix: make grade SUBMISSIONS=folder ASSIGNMENT=1" >&2; exit 1; }
	@TASK=grade sh tools/setup/bootstrap.sh all
	@exec $(RUN) grading grade $(if $(SUBMISSIONS),'$(SUBMISSIONS)') $(if $(ASSIGNMENT),'$(ASSIGNMENT)') $(ARGS)

lint: ## check code, spelling, the notebooks' form and the workflows
	@TASK=lint sh tools/setup/bootstrap.sh lint
	@exec $(RUN) tools.checks --part lint

constraints: ## put the newest versions into constraints/latest.txt
	@TASK=constraints sh tools/setup/bootstrap.sh book
	@$(RUN) tools.setup.uv pip compile --quiet --upgrade --no-header --no-annotate --python-version 3.11 requirements.txt requirements-test.txt -o _build/newest.txt >_build/install.log
	@{ grep '^#' constraints/latest.txt; sed 's/+[^ ;]*//' _build/newest.txt; } >_build/latest.txt && mv _build/latest.txt constraints/latest.txt

clean: ## remove what was built; .venv stays
	@rm -rf _build .pytest_cache .ruff_cache
