#!/bin/sh
# Make a virtual environment and install into it what a task needs:
#
#     sh tools/install.sh book|lint|paper|all ...
#
# Each word stands for a requirements file, `all` for everything that readers and checks
# need. PYTHON=python3.13 names the Python, VENV=folder the environment (.venv), and
# CONSTRAINTS=file the exact versions; CONSTRAINTS= (empty) takes the newest ones.
# On Debian, root also gets the packages that are missing; `debian` installs only these.
set -eu
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
CONSTRAINTS=${CONSTRAINTS-constraints/latest.txt}
python=$VENV/bin/python
stamp=$VENV/.installed # a checksum of what is wanted, then the words installed for it
log=_build/install.log
debian="git make bubblewrap libatomic1 chromium intel-opencl-icd" # the checks call them

fail() {
    echo "error: $1" >&2
    exit 1
}

apt_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 0
    ! dpkg -s "$@" >/dev/null 2>&1 || return 0
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -q -y --no-install-recommends "$@"; } \
        >>"$log" 2>&1 || echo "note: apt-get cannot install all of $* (see $log)" >&2
}

# Print the first Python that suits: $PYTHON, or else one of the usual names.
find_python() {
    set -- python3.13 python3.12 python3.11 python3 /usr/bin/python3
    [ -z "${PYTHON:-}" ] || set -- "$PYTHON"
    for candidate; do
        if "$candidate" -c 'import ensurepip, sys, venv
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate" && return
        fi
    done
}

make_venv() {
    found=$(find_python)
    [ -n "$found${PYTHON:-}" ] || { apt_install python3 python3-venv && found=$(find_python); }
    [ -n "$found" ] ||
        fail "${PYTHON:-python3} is no Python 3.11 to 3.13 with the module venv; TensorFlow has wheels for no other. Fix: install one (Debian: apt-get install python3-venv), or name one: make PYTHON=/path/to/python3.13"
    "$found" -m venv "$VENV" >>"$log" 2>&1 && return
    rm -rf "$VENV"
    fail "$found cannot make $VENV ($(tail -n 1 "$log")). Fix: see $log"
}

# What pip is told by its files or by variables, such as a classroom's mirror.
pip_setting() {
    "$python" -m pip config list |
        sed -n "s/\\\\n/ /g; s/^.*[.]$1=' *\(.*\)'\$/\1/p" | head -n 1
}

# Have uv look where pip looks. Where nobody has chosen a place, PyTorch comes without
# CUDA unless there is a GPU.
configure_uv() {
    export UV_PYTHON_DOWNLOADS=never UV_INDEX_STRATEGY=unsafe-best-match
    export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX-$(pip_setting index-url)}"
    export UV_INDEX="${UV_INDEX-$(pip_setting extra-index-url)}"
    export UV_FIND_LINKS="${UV_FIND_LINKS-$(pip_setting find-links | tr ' ' ,)}"
    [ "$(uname)$UV_DEFAULT_INDEX$UV_INDEX$UV_FIND_LINKS" != Linux ] ||
        export UV_TORCH_BACKEND="${UV_TORCH_BACKEND-auto}"
}

uv_install() { "$python" -m uv pip install --python "$python" "$@"; }

# XLA's compiler for NVIDIA cards, for chapters 17 and 18, in a folder of its own: on its
# path, every `import jax` would look for a card.
install_compiler() {
    wheels=$("$python" -c 'exec(open("snippets/compiler_wheels.py").read())
folder, wheels = compiler_wheels(); print(folder.name, *wheels)') || return
    folder=$VENV/share/${wheels%% *}
    [ "$(uname -sm)" = "Linux x86_64" ] && [ ! -e "$folder" ] || return 0
    rm -rf "$folder.part" # of an interrupted installation
    # shellcheck disable=SC2086 # each word is a package
    uv_install --no-deps --target "$folder.part" ${wheels#* } && mv "$folder.part" "$folder"
}

install() {
    "$python" -m pip install --quiet --no-input uv || return
    configure_uv
    uv_install "$@" || return
    case $words in *all*) install_compiler ;; esac
}

mkdir -p _build
if [ "$*" = debian ]; then
    # shellcheck disable=SC2086 # each word is a package
    apt_install python3 python3-venv $debian
    exit
fi
[ -z "$CONSTRAINTS" ] || [ -r "$CONSTRAINTS" ] ||
    fail "there is no file $CONSTRAINTS. Fix: name one of constraints/"
[ -e "$VENV" ] || make_venv
"$python" -c 'import pip' 2>/dev/null ||
    fail "the environment $VENV is broken. Fix: rm -r $VENV, then run make again"
wanted=$(cat requirements*.txt snippets/compiler_wheels.py ${CONSTRAINTS:+"$CONSTRAINTS"} | cksum)
grep -qsFx "$wanted $CONSTRAINTS" "$stamp" || echo "$wanted $CONSTRAINTS" >"$stamp"
words=""
for word; do
    grep -qFx -e "$word" -e all "$stamp" || words="$words $word"
done
[ -n "$words" ] || exit 0
set --
for word in $words; do
    case $word in
    book | lint | paper) set -- "$@" --requirement "requirements-$word.txt" ;;
    all) # compiled once, because the sandbox's user only reads the environment
        set -- "$@" --compile-bytecode --requirement requirements.txt
        set -- "$@" --requirement requirements-test.txt
        ;;
    *) fail "cannot install $word. Fix: sh tools/install.sh book|lint|paper|all" ;;
    esac
done
[ -z "$CONSTRAINTS" ] || set -- "$@" --constraint "$CONSTRAINTS"
echo "installing into $VENV:$words ..." >&2
# shellcheck disable=SC2086 # each word is a package
case $words in *all*) apt_install $debian ;; esac
if ! install "$@" >"$log" 2>&1; then
    ! grep -Eq 'Failed to fetch|connection broken|Max retries exceeded' "$log" ||
        fail "the package index cannot be reached. Fix: connect to the network, then run make again (all that was said: $log)"
    cause=$(grep -iE -A1 '^ *(error:|×|.*cause:)' "$log" | tr -s '\n ' ' ' | tail -c 400)
    fail "the packages cannot be installed: ${cause:-$(tail -n 1 "$log")}. Fix: see $log"
fi
for word in $words; do echo "$word" >>"$stamp"; done
