# shellcheck shell=sh
# Runs on a node, as "a ssh" would run it: a server of OpenSSH for one connection, which is its input and output, one
# user and one key. $1: the public key; $2: who the client wants to be; $3: the run.
fail() {
    echo "act: $*" >&2
    exit 1
}

me=$(id -un) || fail "this node does not know the name of user $(id -u)"
[ "$2" = "$me" ] || fail "on this node you are '$me', not '$2': write $me@ before the name of the host, or 'User $me'" \
    "for it in ~/.ssh/config"
PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin
if ! sshd=$(command -v sshd) || ! command -v ssh-keygen >/dev/null; then
    fail "this node has no sshd (of the package openssh-server): 'a ssh $3' opens a shell without it"
fi
dir=$(umask 077 && mktemp -d "${TMPDIR:-/tmp}/act-sshd.XXXXXX") || fail "no folder can be made on this node"
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
ssh-keygen -q -t ed25519 -N '' -f "$dir/host" </dev/null || fail "ssh-keygen failed on this node"
printf '%s\n' "$1" >"$dir/keys" || fail "no file can be written on this node"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd # without which sshd of root refuses to start

# What the run's processes have, in the sessions too.
has="\"ACT_RUN_ID=$3\""
for name in PATH LD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX CUDA_VISIBLE_DEVICES; do
    value=$(printenv "$name")
    case $value in
    '' | *[\"\\]*) ;;
    *) has="$has \"$name=$value\"" ;;
    esac
done
# A shell that waits for a command in the foreground would take no signal until that has ended.
exec 3<&0
"$sshd" -i -e -f /dev/null -o "HostKey $dir/host" -o "AuthorizedKeysFile $dir/keys" -o "StrictModes no" \
    -o "PasswordAuthentication no" -o "KbdInteractiveAuthentication no" -o "UsePAM no" -o "PidFile none" \
    -o "PermitRootLogin prohibit-password" -o "Subsystem sftp internal-sftp" -o "PrintMotd no" -o "LogLevel ERROR" \
    -o "SetEnv $has" <&3 &
trap 'kill $! 2>/dev/null; exit 1' HUP INT TERM
wait $!
