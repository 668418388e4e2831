# shellcheck shell=bash
# Shared by the scripts: source it first. Sets strict mode, $root (the repository) and $jobs (ACT_JOBS, or the number of
# processors), and goes to $root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=${ACT_JOBS:-$(nproc)}

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
else
    bold='' dim='' plain=''
fi

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# step TITLE COMMAND...: runs a command under a heading and says how long it took. A failure ends the script, which
# then says in which step.
step() {
    local started=$SECONDS
    step_title=$1
    shift
    trap 'say "failed: $step_title" >&2' EXIT
    printf '\n%s== %s%s\n' "$bold" "$step_title" "$plain"
    "$@"
    printf '%s== %s: ok, %d s%s\n' "$dim" "$step_title" $((SECONDS - started)) "$plain"
    trap - EXIT
}

# as_root COMMAND...: runs a command as root, through sudo where that is needed.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "'$1' needs root: run this as root or install sudo"
    fi
}

# build_preset PRESET [TARGET...]: configures once, then builds. A release needs nothing that only tests need. The dev
# build has the libraries of a release: they are tested with it, and it starts in two thirds of the time.
build_preset() {
    local preset=$1 options=()
    shift
    if [[ $preset == release ]]; then
        options+=(-DBUILD_TESTING=OFF)
    fi
    if [[ $preset == release || $preset == dev ]]; then
        ACT_STATIC_LIBS=$(scripts/static-libs)
        export ACT_STATIC_LIBS
    fi
    if command -v ccache >/dev/null; then
        export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 # what another clone has compiled is there already
        options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    fi
    cmake --preset "$preset" "${options[@]}" >"build/configure-$preset.log" 2>&1 || {
        cat "build/configure-$preset.log" >&2
        return 1
    }
    cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
}

# c_files: the C sources and headers of the project, one per line.
c_files() {
    find act tests -name node_modules -prune -o -type f \( -name '*.c' -o -name '*.h' \) -print | sort
}

# wrapped_files: what `scripts/format --check` holds to the column limit: C, Python, JavaScript and shell.
wrapped_files() {
    c_files
    find scripts .ci -type f
    find tests aux_data -name node_modules -prune -o -type f \( -name '*.py' -o -name '*.mjs' -o -name '*.sh' \) -print
}

# shell_files: the shell scripts of the project, one per line.
shell_files() {
    grep -lrE '^#!.*\b(ba)?sh$|^# shellcheck shell=' scripts .ci act aux_data tests --include='*' \
        --exclude-dir=node_modules --exclude-dir=__pycache__ | sort
}
mkdir -p build
