#!/bin/sh
# Make .venv and install what a task needs: sh tools/setup/bootstrap.sh book|paper|lint|all
# PYTHON=... names the Python to use. CONSTRAINTS=... names another file of versions;
# CONSTRAINTS= (empty) takes the newest. What uv writes goes to _build/install.log.
set -eu

cd "$(dirname "$0")/../.."
what=${1:-all}
case $what in
book) files="requirements-book.txt" ;;
paper) files="requirements-book.txt requirements-paper.txt" ;;
lint) files="requirements-book.txt requirements-lint.txt" ;;
all) files="requirements.txt requirements-test.txt" ;;
*)
    echo "error: cannot install '$what'. Fix: sh tools/setup/bootstrap.sh book|paper|lint|all" >&2
    exit 1
    ;;
esac
constraints=${CONSTRAINTS-constraints/latest.txt}
log=_build/install.log
wheels=snippets/compiler_wheels.py
made=""

fail() {
    echo "error: $1" >&2
    exit 1
}

clean_up() {
    status=$?
    trap - EXIT
    if [ "$status" -ne 0 ] && [ -n "$made" ]; then
        rm -rf .venv
    fi
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The version of a Python such as 3.11, or nothing if it does not run.
version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

suits() {
    case $1 in 3.11 | 3.12 | 3.13) true ;; *) false ;; esac
}

makes_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

# Set $python to one that suits and can make a virtual environment. Otherwise it stays
# empty; $unsuited is then the version of one that does not suit, and $bare one that does
# suit but lacks venv.
find_python() {
    python="" unsuited="" bare=""
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.13 python3.12 python3.11 python3 /usr/bin/python3
    fi
    for candidate in "$@"; do
        found=$(version "$candidate")
        if [ -z "$found" ]; then
            continue
        elif ! suits "$found"; then
            unsuited=${unsuited:-$found}
        elif makes_venv "$candidate"; then
            python=$candidate
            return
        else
            bare=${bare:-$found}
        fi
    done
}

install_debian_python() {
    mkdir -p _build
    if ! {
        apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
                --no-install-recommends python3 python3-venv
    } >"$log" 2>&1; then
        cause=$(grep '^[EW]: ' "$log" | tail -n 1 || true)
        fail "apt-get cannot install python3-venv (${cause:-see $log}). Fix: connect to the network, then run make again"
    fi
}

is_debian_root() {
    [ -e /etc/debian_version ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}

make_venv() {
    find_python
    if [ -z "$python" ] && [ -z "${PYTHON:-}" ] && is_debian_root; then
        if [ -n "$bare" ] || [ -z "$unsuited" ]; then
            install_debian_python
            find_python
        fi
    fi
    if [ -z "$python" ]; then
        if [ -n "$bare" ]; then
            fail "Python $bare found, without the venv module. Fix: apt-get install python$bare-venv, as root"
        elif [ -n "$unsuited" ]; then
            fail "Python $unsuited found; TensorFlow has wheels for 3.11 to 3.13. Fix: install Python 3.13, or name one of these: make PYTHON=/path/to/python3.13 $task"
        elif [ -n "${PYTHON:-}" ]; then
            fail "PYTHON=$PYTHON does not run. Fix: name a Python 3.11 to 3.13"
        fi
        fail "no Python found. Fix: install Python 3.11 to 3.13"
    fi
    made=yes
    mkdir -p _build
    "$python" -m venv .venv >"$log" 2>&1 ||
        fail "$python cannot make .venv ($(tail -n 1 "$log")). Fix: see $log"
}

check_venv() {
    found=$(version .venv/bin/python)
    if [ -z "$found" ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        fail "the virtual environment .venv is broken. Fix: rm -r .venv, then make $task"
    fi
    suits "$found" ||
        fail ".venv has Python $found; TensorFlow has wheels for 3.11 to 3.13. Fix: rm -r .venv, then make PYTHON=/path/to/python3.13 $task"
}

checksum() {
    set -- requirements*.txt ${constraints:+"$constraints"}
    if [ -r "$wheels" ]; then set -- "$@" "$wheels"; fi
    { cat "$@" && echo "$constraints"; } | cksum
}

install() {
    set --
    for file in $files; do set -- "$@" --requirement "$file"; done
    if [ -n "$constraints" ]; then set -- "$@" --constraint "$constraints"; fi
    mkdir -p _build
    echo "installing what make $task needs ..." >&2
    # Compiled here, once: the sandbox and other users only read .venv.
    .venv/bin/python -m tools.setup.uv pip install --python .venv/bin/python \
        --compile-bytecode "$@" >"$log" 2>&1 && gpu_compiler && return
    if grep -Eq 'Failed to fetch|connection broken by|Max retries exceeded' "$log"; then
        fail "the package index cannot be reached. Fix: connect to the network, then make $task (all that was said: $log)"
    fi
    cause=$(grep -iE -A1 '^error: |cause: ' "$log" | tr -s '\n ' ' ' || true)
    fail "what make $task needs cannot be installed (${cause:-$(tail -n 1 "$log")}). Fix: see $log"
}

# XLA's compiler for NVIDIA GPUs, for chapters 17 and 18.
gpu_compiler() {
    [ "$what" != all ] || [ ! -r "$wheels" ] || .venv/bin/python -m tools.setup.gpu_compiler >>"$log" 2>&1
}

task=${TASK:-$what}
if [ "$task" = all ]; then task="test"; fi
for file in requirements-book.txt $files ${constraints:+"$constraints"}; do
    [ -r "$file" ] || fail "$file is missing. Fix: git checkout -- $file"
done
if [ -e .venv ]; then check_venv; else make_venv; fi
wanted=$(checksum)
stamps=.venv/.installed # one for each word that is installed, with the same sum
if ! cat "$stamps-$what" "$stamps-all" 2>/dev/null | grep -qFx "$wanted"; then
    if cat "$stamps"-* 2>/dev/null | grep -vqFx "$wanted"; then rm "$stamps"-*; fi
    install
    echo "$wanted" >"$stamps-$what"
fi
