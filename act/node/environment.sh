# shellcheck shell=sh
# Makes an environment from what a project says that it needs. environment.c hands this text to sh, in the project's
# folder, in the run's container if it has one, with the words
#
#   TOOL FILE DIR SYSTEM WHEELS CACHE
#
# TOOL: what reads FILE. DIR: the folder to make, which is not there yet. SYSTEM: "system", if the packages of the Python
# that is found are to be seen, or nothing. WHEELS: a folder of wheels that takes the place of an index, or nothing.
# CACHE: a folder beside the environments for what tools keep. Whatever is printed is in the preparation's log, and the
# last line is the reason that the run gets.
tool=$1 file=$2 dir=$3 system=$4 wheels=$5 cache=$6

fail() {
    printf 'act: %s\n' "$1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# What concerns another Python than the new one's. Options of the user's for pip that lead out of the new environment go.
unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIREMENT UV_SYSTEM_PYTHON UV_TARGET UV_PREFIX
export PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore UV_NO_PROGRESS=1

# Packages that are built start programs in the folder for temporary files.
probe=$(mktemp) && chmod 700 "$probe" && [ ! -x "$probe" ] && mkdir -p "$dir.tmp" && export TMPDIR="$dir.tmp"
rm -f "$probe"

# ---- of Python alone

find_python() {
    python=$(command -v python3 || command -v python)
}

# uv takes no notice of packages that are there already: then pip, which does, is what is wanted.
has_uv() {
    [ -z "$system" ] && has uv
}

uv_cache() {
    export UV_CACHE_DIR="${UV_CACHE_DIR:-$cache/uv}"
}

# The packages of a virtual environment are seen from one that is made by its Python if this says where they are.
see_parent() {
    "$python" -I -c 'import sys, sysconfig
if sys.prefix != sys.base_prefix:
    print("\n".join(sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})))' >"$dir.parent" &&
        [ -s "$dir.parent" ] && cp "$dir.parent" \
            "$("$dir/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/act-parent.pth"
    rm -f "$dir.parent"
}

make_venv() {
    find_python
    [ -n "$python" ] || fail "$file needs a Python, and there is neither python3 nor uv: install one, or name the module \
that brings it ('modules: [python]')"
    "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 4))' 2>/dev/null ||
        fail "$python is too old to make an environment for $file, or does not run: it takes Python 3.4"
    if ! "$python" -I -m venv ${system:+--system-site-packages} --without-pip "$dir" || ! give_pip; then
        fail "$python can make no environment for $file: it lacks venv or pip; install them (Debian: python3-venv), \
or uv"
    fi
    [ -z "$system" ] || see_parent
}

# Copies the Python's own pip, which takes no time; ensurepip, where that cannot be, takes seconds. pip_version: what
# the copy says of itself, which shows that it runs.
give_pip() {
    packages=$("$dir/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return
    "$python" -I -c 'import glob, os, pip, shutil, sys
if "python%d.%d" % sys.version_info[:2] not in sys.argv[1]:
    sys.exit(1)
at = os.path.dirname(pip.__file__)
about, = glob.glob(glob.escape(at) + "-*.dist-info")
os.stat(os.path.join(about, "RECORD"))
for folder in at, about:
    shutil.copytree(folder, os.path.join(sys.argv[1], os.path.basename(folder)))' "$packages" 2>/dev/null &&
        pip_version=$("$dir/bin/python" -I -m pip --version 2>/dev/null) ||
        "$dir/bin/python" -I -m ensurepip --upgrade >/dev/null 2>&1 || return
    for name in pip pip3; do
        printf '#!%s/bin/python3\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n' "$dir" \
            >"$dir/bin/$name" && chmod 755 "$dir/bin/$name" || return
    done
}

# Makes one, and installs by the words that pip and uv share.
install() {
    if has_uv; then
        find_python
        uv_cache
        echo "act: by $(uv --version)"
        uv venv ${python:+--python "$python"} "$dir" &&
            uv pip install --python "$dir/bin/python" ${wheels:+--no-index --find-links "$wheels"} "$@"
        return
    fi
    make_venv || return
    echo "act: by ${pip_version:-$("$dir/bin/python" -I -m pip --version)}"
    "$dir/bin/python" -I -u -m pip install ${wheels:+--no-index --find-links "$wheels"} "$@"
}

# The programs of packages start the Python of the run's own layer (layer.h) where there is one, so that they see what
# the run has installed there.
# shellcheck disable=SC2016
follow_layer() {
    "$dir/bin/python" -I -c 'import os, re, sys
bin = os.path.join(sys.argv[1], "bin")
if re.search(r"""["$`\\]""", bin):
    sys.exit()
python = re.escape(bin.encode()) + rb"/python[0-9.]*"
first = re.compile(rb"#!" + python + rb"\n|#!/bin/sh\n\x27\x27\x27exec\x27 [\x27\"]?" + python +
                   rb"[\x27\"]? \"\$0\" \"\$@\"\n\x27 \x27\x27\x27\n")
now = b"#!/bin/sh\n\x27\x27\x27exec\x27 \"${VIRTUAL_ENV:-%s}/bin/python3\" \"$0\" \"$@\"\n\x27 \x27\x27\x27\n"
for name in os.listdir(bin):
    path = os.path.join(bin, name)
    if os.path.islink(path) or not os.path.isfile(path):
        continue
    with open(path, "rb+") as file:
        text = file.read(2) == b"#!" and b"#!" + file.read()
        found = text and first.match(text)
        if found:
            file.seek(0)
            file.write(now % sys.argv[1].encode() + text[found.end():])
            file.truncate()' "$dir"
}

# ---- what is missing

needs() {
    has "$1" || fail "$file needs $1, which is not on this node: install it (${2:-see its pages}), or name the module that \
brings it"
}

no_wheels() {
    [ -z "$wheels" ] || fail "'environment.wheels_folder' is for pip and uv, and $file is not read by them"
}

# ---- each tool

case $tool in
requirements) install -r "$file" ;;
uv)
    no_wheels
    needs uv https://docs.astral.sh/uv
    uv_cache
    find_python
    uv venv ${system:+--system-site-packages} ${python:+--python "$python"} "$dir" &&
        UV_PROJECT_ENVIRONMENT=$dir uv sync --frozen --no-install-project
    ;;
pylock)
    needs uv https://docs.astral.sh/uv
    uv_cache
    find_python
    uv venv ${python:+--python "$python"} "$dir" &&
        uv pip sync --python "$dir/bin/python" ${wheels:+--no-index --find-links "$wheels"} "$file"
    ;;
poetry)
    no_wheels
    needs poetry https://python-poetry.org
    make_venv && VIRTUAL_ENV=$dir PATH=$dir/bin:$PATH poetry install --no-root --no-interaction
    ;;
conda)
    no_wheels
    for program in micromamba mamba conda; do
        ! has $program || break
        program=
    done
    case $program:$file in
    :*) fail "$file needs micromamba, mamba or conda, and none is on this node: install one, or name the module that brings \
it" ;;
    micromamba:*) micromamba create --yes --prefix "$dir" --file "$file" ;;
    *:environment.yml) "$program" env create --prefix "$dir" --file "$file" ;;
    *)
        needs conda-lock "or micromamba, which reads $file itself"
        conda-lock install --prefix "$dir" "$file"
        ;;
    esac
    ;;
pixi) # it makes environments beside the manifest only
    no_wheels
    needs pixi https://pixi.sh
    manifest=pixi.toml
    [ -e pixi.toml ] || manifest=pyproject.toml
    mkdir "$dir.pixi" && cp pixi.lock "$manifest" "$dir.pixi" &&
        pixi install --frozen --manifest-path "$dir.pixi/$manifest" && ln -s "${dir##*/}.pixi/.pixi/envs/default" "$dir"
    ;;
esac
made=$?
rm -rf "$dir.tmp"
[ $made -eq 0 ] || exit $made
[ -x "$dir/bin/python" ] || exit 0 # of conda without Python
[ ! -e "$dir/pyvenv.cfg" ] || "$dir/bin/python" -I -c 'import pip' 2>/dev/null || [ -z "$python" ] || give_pip
follow_layer
