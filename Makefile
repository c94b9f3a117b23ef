# The commands of this book: `make help` lists them. All take these variables:
#
#     PYTHON=python3.13                   the Python that the environment is made with
#     CONSTRAINTS=constraints/colab.txt   other versions; CONSTRAINTS= takes the newest
#     VENV=_build/colab                   another environment than .venv
#
# `make test SLOW=1` adds the tests that are slow and rarely change. TESTS="notebooks/
# 04-place-operations.ipynb tests/checks" has pytest run these alone, and PYTEST_ARGS="-x
# -k xla" hands options on to it.
.DEFAULT_GOAL := help
.PHONY: help book serve pdf epub zip test claims lint tests lab sync address refresh measure versions assignments grade mark constraints clean
VENV ?= .venv
export VENV
BIN := $(VENV)/bin
RUN := $(BIN)/python -m
INSTALL := sh tools/install.sh

help: ## list these commands
	@grep -E '^[a-z]+:.* ## ' Makefile | sed -E 's/^([a-z]+):.* ## /make \1	/' | expand -t 18

# --- The site ---

SITE := _build/html
CONF := _build/conf/conf.py
SPHINX := -c $(dir $(CONF)) -j auto -n -q
FILES := -type f ! -path '*/.*' ! -path '*/__pycache__/*' ! -name '* *'
INPUTS := $(shell find book notebooks assignments/*.ipynb constraints grading programs snippets tools requirements*.txt $(FILES) 2>/dev/null)

book: ## build the site; all it needs is installed into .venv
	@$(INSTALL) book
	@$(MAKE) --no-print-directory $(SITE)/index.html
	@echo "the book is built: $(SITE)/index.html"

# The site is built from nothing: every page's menu shows the titles of all. What a failed
# build leaves is removed: the next one would not repeat the warnings.
$(SITE)/index.html: $(CONF) _toc.yml $(INPUTS) $(VENV)/.installed $(wildcard .git/logs/HEAD _build/downloads/*)
	@$(RUN) tools.notebooks.sync --check
	@rm -rf $(SITE) _build/.doctrees && touch _build/.begun
	@trap 'exit 130' INT TERM && trap 'rm -rf $(SITE) _build/.doctrees' EXIT && \
	PYTHONPATH=book/_ext $(RUN) sphinx $(SPHINX) -W --keep-going -d _build/.doctrees . $(SITE) && \
	trap - EXIT && touch -r _build/.begun $@

# Jupyter Book's settings for Sphinx; paths in them count from here, not from their file.
$(CONF): _config.yml
	@$(INSTALL) book
	@mkdir -p $(@D) && $(BIN)/jupyter-book config sphinx . >/dev/null && mv conf.py $@
	@echo 'def setup(app): app.confdir = app.srcdir' >>$@

serve: $(CONF) ## show the site and build it again after each change [PORT=8000]
	@$(INSTALL) book
	@PYTHONPATH=book/_ext $(RUN) sphinx_autobuild $(SPHINX) --port $(or $(PORT),8000) --re-ignore '(^|/)([.]|_build|__pycache__)' . _build/serve

pdf: book ## print the built site as one PDF
	@$(INSTALL) book paper
	@$(RUN) tools.paper pdf

epub: ## make an EPUB of the book
	@$(INSTALL) book paper
	@$(RUN) tools.paper epub

zip: book ## pack the site, to read offline, and the notebooks
	@$(RUN) tools.paper zip

# --- The checks ---

PYTEST = $(RUN) pytest -n auto --dist loadscope --junitxml=_build/reports/$1.xml
PARTS := claims lint book tests

test: ## run all checks: the claims, lint, the site, the tests [SLOW=1 TESTS= PYTEST_ARGS=]
	@$(INSTALL) all
ifdef TESTS
	@$(call PYTEST,$(if $(filter notebooks%,$(TESTS)),claims,tests)) $(TESTS) $(PYTEST_ARGS)
else
	@red=""; for part in $(PARTS); do \
		echo && echo "== $$part ==" && $(MAKE) --no-print-directory $$part || red="$$red $$part"; \
	done; \
	if [ -n "$$red" ]; then echo && echo "red:$$red" >&2 && exit 1; fi; echo && echo "all is green: $(PARTS)"
endif

claims: ## execute the notebooks: outputs are compared, claims are asserted
	@rm -f _build/reports/claims.*
	@$(INSTALL) all
	@$(call PYTEST,claims) notebooks $(PYTEST_ARGS)

tests: ## test the tools, the site and the grader [SLOW=1 PYTEST_ARGS=]
	@rm -f _build/reports/tests.*
	@$(INSTALL) all
	@$(call PYTEST,tests) tests $(if $(SLOW),,-m "not slow") $(PYTEST_ARGS)

lint: ## check code, spelling, the notebooks' form and the workflows
	@$(INSTALL) book lint
	@red=0; \
	$(RUN) ruff check -q || red=1; \
	$(RUN) ruff format -q --check || red=1; \
	$(RUN) codespell_lib || red=1; \
	$(RUN) tools.notebooks.form || red=1; \
	$(RUN) tools.notebooks.sync --check || red=1; \
	$(BIN)/shellcheck .ci/run $$(find tools .github -name '*.sh') || red=1; \
	$(BIN)/actionlint -shellcheck $(BIN)/shellcheck -pyflakes= || red=1; \
	$(BIN)/zizmor --offline --quiet --no-progress .github || red=1; \
	exit $$red

# --- Writing and teaching ---

lab: ## open the notebooks and assignments in JupyterLab
	@$(INSTALL) all
	@$(RUN) jupyterlab

sync: ## copy snippets, addresses and lists of claims into the chapters
	@$(INSTALL) book
	@$(RUN) tools.notebooks.sync

# OWNER/NAME stands in addresses of GitHub and of Colab; the site is OWNER.github.io/NAME, or
# OWNER.github.io alone if that is the NAME.
address: ## change the repository's address in all files: URL=https://github.com/OWNER/NAME
	@case '$(URL)' in https://github.com/?*/*[!/]) ;; *) echo "error: which one? Fix: make address URL=https://github.com/OWNER/NAME" >&2; exit 1 ;; esac
	@site() { echo "$$1" | sed 's|/|.github.io/|; s|^\(.*\)/\1$$|\1|'; }; \
	old=$$(sed -n 's|^  url: https://github.com/\([^ ]*\).*|\1|p' _config.yml); new='$(URL:https://github.com/%=%)'; \
	git grep -lz "$${old%/*}" | xargs -0 perl -pi \
		-e "s{github(\.com|usercontent\.com|)/\Q$$old\E(?![\w-])}{github\$$1/$$new}g;" \
		-e "s{\Q$$(site "$$old")\E(?![\w-])}{$$(site "$$new")}g"

refresh: ## execute notebooks and store their outputs [NB=05]
	@$(INSTALL) all
	@$(RUN) tools.notebooks.sync
	@$(RUN) pytest --store $(if $(NB),notebooks/$(NB)-*.ipynb,notebooks) $(PYTEST_ARGS)

measure: ## measure this machine for What a GPU would give [ARGS=--quick or --compiler]
	@$(INSTALL) all
	@$(RUN) $(if $(findstring --compiler,$(ARGS)),tools.plan,tools.plan.measure $(ARGS))

versions: ## run the claims with other versions, and record what held: SET=colab [PYTHON=python3.13]
	@test -f "constraints/$(SET).txt" || { echo "error: which set? Fix: make versions SET=colab (constraints/sets.yml)" >&2; exit 1; }
	@rm -f _build/reports/claims.json
	-@$(MAKE) --no-print-directory $(if $(TESTS),test,claims) VENV=_build/$(SET) CONSTRAINTS=constraints/$(SET).txt PYTEST_ARGS=--nbval-lax
	@$(INSTALL) book
	@$(RUN) tools.versions $(SET)

assignments: ## make the students' notebooks from assignments/masters
	@$(INSTALL) all
	@$(RUN) grading assign

grade: ## grade a folder of notebooks: SUBMISSIONS=folder ASSIGNMENT=2 [ARGS=--help]
mark: ## open the page to mark written answers on: SUBMISSIONS=folder ASSIGNMENT=2 [ANONYMOUS=1]
grade mark:
	@test -n "$(if $(and $(SUBMISSIONS),$(ASSIGNMENT))$(ARGS),yes)" || { echo "error: of what? Fix: make $@ SUBMISSIONS=folder ASSIGNMENT=1" >&2; exit 1; }
	@$(INSTALL) all
	@exec $(RUN) grading $@ $(if $(SUBMISSIONS),"$$SUBMISSIONS") $(if $(ASSIGNMENT),'$(ASSIGNMENT)') $(if $(ANONYMOUS),--anonymous) $(ARGS)

constraints: ## put the newest versions into constraints/latest.txt
	@$(INSTALL) book
	@$(RUN) uv pip compile --quiet --upgrade --no-header --no-annotate --python-version 3.11 requirements.txt requirements-test.txt -o _build/newest.txt >_build/install.log
	@{ grep '^#' constraints/latest.txt; sed 's/+[^ ;]*//' _build/newest.txt; } >_build/latest.txt && mv _build/latest.txt constraints/latest.txt

clean: ## remove what was built; .venv stays
	@rm -rf _build .pytest_cache .ruff_cache
