# shellcheck shell=bash
# The environment of a run's commands on a node, beyond the node's own: modules, a conda environment, a virtual
# environment, and lines that the user wrote, in this order. setup.c hands this text to bash, with the words
#
#   MODE FOLDER PURGE MODULES CONDA VENV LINES [COMMAND...]
#
# MODE capture: what the environment is before and after is written to FOLDER/before and FOLDER/after, as the kernel
# keeps it in /proc/PID/environ. MODE run: COMMAND runs in it; MODE rank: the same, of a rank alone. MODE look: what
# there is to name is printed, and nothing else done. PURGE is "purge" or nothing; MODULES has a line for each; what is
# empty is left out. Names begin with act_, as the user's lines see them.

# The last line that is printed is the reason that the run gets.
act_fail() {
    trap - EXIT
    printf 'act: %s\n' "$1" >&2
    exit "${2:-1}"
}

# STATUS LINE COMMAND: a command of the user's lines failed. Lines that bash cannot read are no command of theirs.
act_fail_line() {
    # shellcheck disable=SC2016 # the command as it is written here
    case $3 in
    '. <('* | '. "$act_folder'*) act_fail "bash cannot read '$act_key': see its message in the log" "$1" ;;
    esac
    act_fail "line $2 of '$act_key' ended with status $1: $3" "$1"
}

# STATUS: the lines ended the shell, and with it what comes behind them.
act_end() {
    trap - EXIT
    # as with an unset variable under 'set -u'
    (($1 != 127)) || act_fail "bash ended '$act_key' at an error: see its message in the log" "$1"
    act_fail "'$act_key' ended the shell, with 'exit $1'" "$(($1 ? $1 : 1))"
}

# ---- modules: a function of the shell, which only login shells have

# Debian's /etc/profile.d/modules.sh asks ps for the name of this shell, which takes 15 ms.
# shellcheck disable=SC2016 # as bash reads it then; in POSIX mode no function has such a name
[[ -o posix ]] || eval '/bin/ps() { [[ $* == "-p $$ -ocomm=" ]] && printf "bash\n" || command /bin/ps "$@"; }'

act_find_module() {
    local init
    for init in "${MODULESHOME:+$MODULESHOME/init/bash}" "${LMOD_PKG:+$LMOD_PKG/init/bash}" \
        /etc/profile.d/{modules,lmod,z00_lmod,z01_lmod}.sh /usr/share/{lmod/lmod,modules,Modules}/init/bash \
        /opt/{lmod,apps/lmod}/lmod/init/bash /usr/local/Modules/init/bash; do
        ! declare -F module >/dev/null || return 0
        # shellcheck source=/dev/null
        [[ ! -r $init ]] || . "$init"
    done
    ! declare -F module >/dev/null || return 0
    [[ -x ${LMOD_CMD:-} ]] || return 1
    module() { eval "$("$LMOD_CMD" bash "$@")"; }
}

# Prints some modules whose names begin as $1 does.
act_near_modules() {
    local line name all near
    all=$(module -t avail 2>&1)
    for name in "${1%%/*}" "${1:0:2}"; do
        near=$(while read -r line; do
            [[ $line == *[:/] || ${line,,} != "${name,,}"* ]] || printf '%s\n' "${line%%[(]*}"
        done <<<"$all" | sort -u | head -n 5 | paste -s -d ' ')
        [[ -z $near ]] || break
    done
    printf '%s\n' "$near"
}

# Tells whether a module is loaded under this name, with any version if it names none.
act_is_loaded() {
    [[ ":${LOADEDMODULES:-}:" == *":$1"[:/]* ]]
}

# Loads one module, or says why it cannot.
act_load_module() {
    local name=$1 near status before=${LOADEDMODULES:-}
    module load "$name" </dev/null # the tool must not read what is meant for others
    status=$?
    # old releases return 0 in any case; an alias loads a module of another name
    if [[ $status == 0 ]]; then
        ! act_is_loaded "$name" && [[ ${LOADEDMODULES:-} == "$before" ]] || return 0
    fi
    near=$(act_near_modules "$name")
    [[ " $near " != *" $name"[/\ ]* ]] || near= # it is there: what the tool printed says why
    act_fail "cannot load the module '$name'${near:+; near it there are: $near}"
}

# Loads modules with one start of the tool, which takes some 50 ms. Returns 1 unless each is loaded under its name.
act_load_together() {
    local name
    module load "$@" </dev/null || return 1
    for name in "$@"; do
        act_is_loaded "$name" || return 1
    done
}

act_load_modules() {
    local names name
    read -r -d '' -a names <<<"$1"
    act_find_module || act_fail "this node has no modules: neither Environment Modules nor Lmod is where sites put them"
    [[ $act_purge != purge || -z ${LOADEDMODULES:-} ]] || module purge
    ((${#names[@]})) || return 0
    # The status alone does not tell: old releases return 0 in any case.
    if ((${#names[@]} > 1)); then
        act_load_together "${names[@]}" && return
        # Loaded one by one, each shows whether it fails, or is an alias: that changes what is loaded.
        module unload "${names[@]}" </dev/null >/dev/null 2>&1
    fi
    for name in "${names[@]}"; do
        act_load_module "$name"
    done
}

# ---- conda: what 'conda activate' does, also where its hook for shells is not set up

# Prints the folders that may hold environments by name.
act_conda_folders() {
    local base line in_list=
    [[ ! -r ~/.condarc ]] || while read -r line; do
        case $line in
        envs_dirs:*) in_list=1 ;;
        '- '*) [[ -z $in_list ]] || printf '%s\n' "${line#- }" ;;
        *) in_list= ;;
        esac
    done <~/.condarc
    printf '%s\n' ~/.conda/envs
    act_conda_bases | while read -r base; do
        printf '%s\n' "$base/envs"
    done
}

act_conda_bases() {
    local program
    for program in "${CONDA_EXE:-}" "${MAMBA_EXE:-}" "$(type -P conda)" "$(type -P mamba)"; do
        [[ -z $program ]] || printf '%s\n' "${program%/*/*}"
    done
    [[ -z ${MAMBA_ROOT_PREFIX:-} ]] || printf '%s\n' "$MAMBA_ROOT_PREFIX"
    printf '%s\n' ~/{miniforge3,mambaforge,miniconda3,anaconda3,micromamba,.local/share/mamba} \
        /opt/{conda,miniforge3,mambaforge,miniconda3,anaconda3}
}

# Prints the folder of the environment that is called so.
act_find_conda() {
    local folder
    case $1 in
    /*) folder=$1 ;;
    \~/*) folder=$HOME/${1#\~/} ;;
    esac
    if [[ -n ${folder:-} ]]; then
        [[ -d $folder/conda-meta ]] && printf '%s\n' "$folder"
        return
    fi
    if [[ $1 == base ]]; then
        act_conda_bases
    else
        [[ ! -r ~/.conda/environments.txt ]] || cat ~/.conda/environments.txt
        act_conda_folders | while read -r folder; do
            printf '%s\n' "$folder/$1"
        done
    fi | while read -r folder; do
        [[ $1 == base || ${folder##*/} == "$1" ]] || continue
        [[ -d $folder/conda-meta ]] && printf '%s\n' "$folder" && break
    done | grep .
}

# Prints the folder on the way to a path that this user may not look into, and whose it is; nothing: there is none.
act_closed() {
    local at=$1
    while [[ $at == /* && ! -d $at ]]; do
        at=${at%/*}
    done
    [[ $at != /* || -x $at ]] || printf "'%s', which belongs to %s" "$at" "$(stat -c %U -- "$at")"
}

act_conda_names() {
    local folder
    act_conda_folders | while read -r folder; do
        for folder in "$folder"/*/conda-meta; do
            folder=${folder%/conda-meta}
            [[ ! -d $folder/conda-meta ]] || printf '%s\n' "${folder##*/}"
        done
    done | sort -u | head -n 10 | paste -s -d ' '
}

# The scripts of packages, such as those of compilers, in an environment's etc/conda/activate.d or deactivate.d.
act_conda_scripts() {
    local script
    for script in "$1/etc/conda/$2.d"/*.sh; do
        # shellcheck source=/dev/null
        [[ ! -r $script ]] || . "$script"
    done
}

act_conda() {
    local prefix names state closed
    if ! prefix=$(act_find_conda "$1"); then
        closed=$(act_closed "${1/#\~/$HOME}")
        [[ -z $closed ]] || act_fail "the conda environment '$1' cannot be read: you may not look into $closed"
        names=$(act_conda_names)
        act_fail "there is no conda environment '$1' on this node${names:+; it has: $names}"
    fi
    if [[ -n ${CONDA_PREFIX:-} ]]; then
        act_conda_scripts "$CONDA_PREFIX" deactivate
        PATH=:$PATH:
        PATH=${PATH//:"$CONDA_PREFIX"\/bin:/:}
        PATH=${PATH#:}
        PATH=${PATH%:}
    fi
    export CONDA_PREFIX=$prefix CONDA_DEFAULT_ENV=${1##*/} CONDA_SHLVL=1 CONDA_PROMPT_MODIFIER="(${1##*/}) " \
        PATH="$prefix/bin:$PATH"
    # variables set by 'conda env config vars set'
    state=$prefix/conda-meta/state
    if [[ -r $state && -x $prefix/bin/python ]]; then
        eval "$("$prefix/bin/python" -c 'import json, shlex, sys
for name, value in json.load(open(sys.argv[1])).get("env_vars", {}).items():
    print(f"export {name}={shlex.quote(value)}" if value != "***unset***" else f"unset {name}")' "$state")"
    fi
    act_conda_scripts "$prefix" activate
}

# ---- a virtual environment

act_venv() {
    local folder=${1/#\~\//$HOME/}
    [[ -r $folder/pyvenv.cfg ]] || act_fail "'$1' is not a virtual environment on this node: it has no pyvenv.cfg"
    [[ -x $folder/bin/python ]] || act_fail "the Python of the virtual environment '$1' is not on this node: make it anew"
    export VIRTUAL_ENV=$folder VIRTUAL_ENV_PROMPT="(${folder##*/}) " PATH="$folder/bin:$PATH"
    unset PYTHONHOME
}

# ---- what there is to name

# Prints a line for modules that most look for, one for environments of conda, and one for each Python.
act_look() {
    local wanted='^(.*/)?(cuda|nccl|openmpi|mpich|python|anaconda|miniconda|miniforge|pytorch|tensorflow|gcc)[^/]*/'
    local names python
    if act_find_module; then
        names=$(module -t avail 2>&1 | sed 's/(.*//' | grep -E -i "$wanted" | grep -v '[:/]$' | sort -u | head -n 12 |
            paste -s -d ' ')
        printf 'modules %s\n' "${names:-(module avail)}"
    fi
    names=$(act_conda_names)
    [[ -z $names ]] || printf 'conda %s\n' "$names"
    type -aP python3 | awk '!seen[$0]++' | while read -r python; do
        printf 'python %s at %s\n' "$("$python" -I -S -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')" "$python"
    done
}

# ---- all of it

hash cat
act_cat=${BASH_CMDS[cat]:-$(type -P cat)} # also where a function has that name, and whatever becomes of PATH
act_mode=$1 act_folder=$2 act_purge=$3 act_key=setup
[[ $act_mode != look ]] || {
    act_look
    exit
}
[[ $act_mode != rank ]] || act_key=setup_rank
[[ $act_mode != capture ]] || "$act_cat" "/proc/$$/environ" >"$act_folder/before"
[[ -z $4 && -z $3 ]] || act_load_modules "$4"
[[ -z $5 ]] || act_conda "$5"
[[ -z $6 ]] || act_venv "$6"
act_lines=$7
shift 7
if [[ -n $act_lines ]]; then
    trap 'act_end $?' EXIT
    trap 'act_fail_line $? $LINENO "$BASH_COMMAND"' ERR
    # shellcheck source=/dev/null
    if [[ $act_mode == capture ]]; then # bash's own messages begin with the name of the file
        printf '%s\n' "$act_lines" >"$act_folder/$act_key"
        . "$act_folder/$act_key"
    else
        . <(printf '%s\n' "$act_lines")
    fi
    trap - ERR EXIT
fi
if [[ $act_mode == capture ]]; then
    exec "$act_cat" /proc/self/environ >"$act_folder/after" || exit 1
fi
cd "${ACT_RUN_CODE:-.}" || exit
exec "$@"
