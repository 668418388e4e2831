#!/bin/bash
# Stops the cluster of one state folder, by the process ids recorded there. Harmless to repeat.
#   stop.sh [-d STATE_DIR] [-x]      -x deletes the folder as well
set -uo pipefail

dir=${TMPDIR:-/tmp}/slurm-testbed delete=''
while getopts d:xh option; do
    case $option in
    d) dir=$OPTARG ;;
    x) delete=1 ;;
    *)
        echo "usage: $0 [-d STATE_DIR] [-x]" >&2
        exit 2
        ;;
    esac
done

die() {
    printf 'slurm-testbed: %s\n' "$*" >&2
    exit 1
}

[[ -d $dir ]] || exit 0
dir=$(cd "$dir" && pwd -P)
if [[ ! -d $dir/etc || ! -d $dir/ctld ]]; then # never touches a foreign folder
    [[ -z $(find "$dir" -mindepth 1 ! -name .lock -print -quit) ]] || die "$dir is not the state folder of a testbed"
fi
if [[ ${SLURM_TESTBED_LOCKED:-} != "$dir" ]]; then # start.sh holds the lock when it calls
    exec 9>"$dir/.lock"
    flock -w 120 9 || die "$dir is locked"
    [[ $dir/.lock -ef /proc/$$/fd/9 ]] || exit 0 # deleted in the meantime
fi
export PATH=$PATH:/usr/sbin:/sbin SLURM_CONF=$dir/etc/slurm.conf

runs() {
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

# is_called PID NAME: whether the process has that name. It starts none itself, as it looks at all of a machine.
is_called() {
    local name=''
    read -r name 2>/dev/null <"/proc/$1/comm"
    [[ $name == "$2" ]]
}

# pid_of PIDFILE NAME: the process id, if that very process still runs.
pid_of() {
    local pid
    pid=$(cat "$1" 2>/dev/null) && [[ $pid ]] && is_called "$pid" "$2" && runs "$pid" && echo "$pid"
}

# end [PIDFILE NAME]...: TERM to all of them, and KILL to what is left after 10 s.
end() {
    local pid pids=() files=() tenths=100
    while (($# > 1)); do
        if pid=$(pid_of "$1" "$2"); then
            kill -TERM "$pid" 2>/dev/null
            pids+=("$pid")
        fi
        files+=("$1")
        shift 2
    done
    for pid in "${pids[@]}"; do
        while runs "$pid"; do
            if ((--tenths <= 0)); then
                kill -KILL "$pid" 2>/dev/null
                break
            fi
            sleep 0.1
        done
    done
    rm -f "${files[@]}"
}

# Jobs outlive their slurmd, because each step is a process of its own: they go first.
cancel_jobs() {
    local ids i
    mapfile -t ids < <(timeout 5 squeue -h -o %A 2>/dev/null | sort -u)
    ((${#ids[@]})) || return
    timeout 10 scancel --full "${ids[@]}" 2>/dev/null
    timeout 10 scancel -s KILL "${ids[@]}" 2>/dev/null
    for ((i = 0; i < 100; i++)); do
        [[ $(timeout 5 squeue -h -t RUNNING,COMPLETING,SUSPENDED -o %i 2>/dev/null) ]] || return
        sleep 0.1
    done
}

# Steps of this cluster that nobody ended.
kill_steps() {
    local folder pid
    for folder in /proc/[0-9]*; do
        pid=${folder#/proc/}
        is_called "$pid" slurmstepd || continue
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx "SLURM_CONF=$SLURM_CONF" && kill -KILL "$pid"
    done
}

! pid_of "$dir/run/slurmctld.pid" slurmctld >/dev/null || cancel_jobs
daemons=("$dir/run/slurmctld.pid" slurmctld)
for file in "$dir"/run/slurmd.*.pid; do
    [[ ! -e $file ]] || daemons+=("$file" slurmd)
done
end "${daemons[@]}"
kill_steps 2>/dev/null
end "$dir/run/slurmdbd.pid" slurmdbd
end "$dir/run/mariadb.pid" mariadbd "$dir/run/munged.pid" munged
rm -f "$dir/run/munge.sock" "$dir/run/munge.sock.lock"
[[ $delete ]] || exit 0
find "$dir" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf -- {} + || exit 1
[[ ${SLURM_TESTBED_LOCKED:-} == "$dir" ]] || rm -rf -- "$dir"
