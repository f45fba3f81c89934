#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# slurm.sh COMMAND... - run a command beside a Slurm of its own: a controller and two nodes, all on this machine.
#
# Everything lives in a new folder and ends with the command; authentication is off (auth/none), since nobody else is
# to reach it. Exit 77 (a skip) where Slurm is not installed.
set -u
for program in slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null 2>&1 || [ -x "/usr/sbin/$program" ] ||
        { echo "1..0 # SKIP no Slurm here: apt-get install slurmctld slurmd slurm-client"; exit 77; }
done
PATH=$PATH:/usr/sbin
top=$(mktemp -d "${TMPDIR:-/tmp}/cutegen-slurm.XXXXXX")
host=$(hostname -s)
user=$(id -un)

# Three free ports, held until just before they are used.
ports=$(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(s.getsockname()[1] for s in held))')
set_ports() { controller_port=$1 port1=$2 port2=$3; }
set_ports $ports

mkdir -p "$top/state" "$top/n1" "$top/n2"
cat >"$top/slurm.conf" <<CONF
ClusterName=cutegen
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller_port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
StateSaveLocation=$top/state
SlurmdSpoolDir=$top/%n
SlurmctldPidFile=$top/slurmctld.pid
SlurmdPidFile=$top/%n.pid
SlurmctldLogFile=$top/slurmctld.log
SlurmdLogFile=$top/%n.log
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=30
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$port1 CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$port2 CPUs=2 RealMemory=1000
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=60 State=UP
CONF
SLURM_CONF=$top/slurm.conf
export SLURM_CONF PATH

finish()
{
    scancel --quiet --user "$user" >/dev/null 2>&1
    for file in "$top"/*.pid; do
        [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null
    done
    for file in "$top"/*.pid; do
        i=0
        while [ -s "$file" ] && kill -0 "$(cat "$file" 2>/dev/null || echo 999999999)" 2>/dev/null && [ $i -lt 300 ]; do
            sleep 0.1
            i=$((i + 1))
        done
    done
    rm -rf "$top"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Ready when both nodes are idle. Slow machines need a while; a broken one is given up.
ready()
{
    i=0
    while [ "$(sinfo --noheader --format=%t --Node 2>/dev/null | grep -c '^idle$')" != 2 ]; do
        [ $i -lt 12000 ] || return 1
        sleep 0.1
        i=$((i + 1))
    done
}
slurmctld -c && slurmd -N n1 && slurmd -N n2
if ! ready; then
    echo "Slurm does not start:" >&2
    tail -n 20 "$top"/*.log >&2
    exit 1
fi
"$@"
