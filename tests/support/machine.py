# SPDX-License-Identifier: Apache-2.0
"""A machine for one test: a fresh Debian in a folder, started by its own systemd in namespaces of its own.

Its network is a loopback and nothing else, its rules of nft and its services are its own. It needs root, debootstrap and
the package mirror that this machine's apt knows. The folder is made once, in build/machine; a test gets a layer
upon it, which goes away.
"""

import fcntl
import hashlib
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import time

from support import cases
from support.place import PATIENCE_S, ROOT, until

_BASE = os.path.join(ROOT, "build", "machine")
_PACKAGES = ("systemd", "systemd-sysv", "dbus", "init-system-helpers", "ca-certificates", "curl", "nginx-light",
             "openssh-server", "openssh-client", "nftables", "iproute2", "procps")
_PATIENCE_S = 600

# Becomes the machine's first process, in a namespace of each kind.
_BOOT = r"""
set -e
root=$1 base=$2 upper=$3 work=$4
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$base,upperdir=$upper,workdir=$work" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for name in null zero full random urandom tty; do : >dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
pivot_root . mnt
cd /
umount -l /mnt
exec env -i container=weir-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null
"""


def _run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=_PATIENCE_S, **more)
    return done.returncode, done.stdout


def _mirror():
    """The mirror of Debian that apt uses here, the suite's name, and the suites that belong to it."""
    code, told = _run("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(CODENAME)|$(SUITE)|$(REPO_URI)|"
                      "$(COMPONENT)|$(CREATED_BY)")
    lines = {tuple(line.split("|")[:6]) for line in told.splitlines() if line.endswith("|Packages")} if code == 0 else set()
    main = [line for line in lines if line[0] == "Debian" and line[1] == "Debian" and "-" not in line[2]
            and line[5] == "main"]
    if not main:
        raise cases.Skipped("apt knows no mirror of Debian here (apt-get update)")
    return main[0][4], main[0][2], sorted((line[4], line[2]) for line in lines if line[0] == "Debian" and line[5] == "main")


def _make(folder):
    """A fresh Debian with nginx and sshd, which nobody has used yet."""
    uri, suite, sources = _mirror()
    debootstrap = shutil.which("debootstrap", path=os.environ.get("PATH", "") + ":/usr/sbin")
    code, told = _run(debootstrap, "--variant=minbase", "--include=ca-certificates", suite, folder, uri)
    if code != 0:
        raise cases.Skipped(f"debootstrap finds no Debian here: {told[-300:]}")
    with open(f"{folder}/etc/apt/sources.list", "w", encoding="ascii") as file:
        file.writelines(f"deb {uri} {name} main\n" for uri, name in sources)
    _, settings = _run("apt-config", "dump")
    with open(f"{folder}/etc/apt/apt.conf.d/99machine", "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in settings.splitlines() if line.startswith("Acquire::http"))
        file.write('APT::Install-Recommends "false";\n')
    shutil.copy("/etc/resolv.conf", f"{folder}/etc/resolv.conf")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    for command in (("update",), ("install", *_PACKAGES)):
        code, told = _run("chroot", folder, "apt-get", "-q", "-y", *command, env=environment)
        assert code == 0, told[-2000:]


def base():
    """The folder, made at the first call; where it cannot be had, the test is skipped."""
    if os.geteuid() != 0:
        raise cases.Skipped("a machine in a namespace needs root")
    for program in ("debootstrap", "unshare", "nsenter", "ip", "apt-get"):
        if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            raise cases.Skipped(f"no {program} here (deploy/packages install)")
    os.makedirs(_BASE, exist_ok=True)
    with open(os.path.join(_BASE, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recipe = inspect.getsource(_make) + " ".join(_PACKAGES)
        made = os.path.join(_BASE, "debian-" + hashlib.sha256(recipe.encode()).hexdigest()[:12])
        if not os.path.exists(made):
            shutil.rmtree(made + ".part", ignore_errors=True)
            _make(made + ".part")
            os.rename(made + ".part", made)
    return made


def _make_cgroup(name):
    """A control group for one machine, below this process's own: two machines must not share theirs."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
    with open("/proc/self/cgroup", encoding="ascii") as file:
        own = [line.strip()[3:] for line in file if line.startswith("0::")]
    if not mounts or not own:
        raise cases.Skipped("no control groups (version 2) are mounted here")
    path = os.path.join(mounts[0], own[0].lstrip("/"), name)
    try:
        os.mkdir(path)
    except OSError as why:
        raise cases.Skipped(f"no control group can be made here: {why}") from None
    return path


def _remove_cgroup(path):
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # its last process is not gone yet: the caller tries again


class Machine:
    """One that runs."""

    def __init__(self, prepare=None):
        """prepare(run): what is done in the folder before the machine starts, where the network is still this one's."""
        below = base()
        self.directory = tempfile.mkdtemp(prefix="weir-machine-", dir=_BASE)
        self._init = None
        for name in ("root", "upper", "work"):
            os.mkdir(self.path(name))
        if prepare is not None:
            self._prepare(below, prepare)
        self._below = below
        self._boot()

    def _boot(self):
        self._cgroup = _make_cgroup(os.path.basename(self.directory))
        # pylint: disable-next=consider-using-with
        self._unshare = subprocess.Popen(
            ["bash", "-c", 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"', "bash", self._cgroup, "unshare", "--mount",
             "--pid", "--net", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "bash", "-c", _BOOT, "boot", self.path("root"), self._below, self.path("upper"), self.path("work")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self._init = until(self._child, "the machine's first process runs", patience_s=30)
            until(lambda: self.run("systemctl", "is-system-running")[1].strip() in ("running", "degraded"),
                  "the machine has started", patience_s=90)
        except BaseException:
            self.end()
            raise

    def _child(self):
        if self._unshare.poll() is not None:
            raise cases.Skipped(f"no machine starts here: {self._unshare.stdout.read().decode()[-300:]}")
        with open(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        if not children:
            return None
        with open(f"/proc/{children[0]}/comm", encoding="ascii") as file:
            return int(children[0]) if file.read().strip() == "systemd" else None

    def _prepare(self, below, prepare):
        layers = f"lowerdir={below},upperdir={self.path('upper')},workdir={self.path('work')}"
        code, told = _run("mount", "-t", "overlay", "overlay", "-o", layers, self.path("root"))
        if code != 0:
            raise cases.Skipped(f"no overlay can be mounted here: {told[-300:]}")
        try:
            prepare(self.path("root"), lambda *command: _run(
                "chroot", self.path("root"), *command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}))
        finally:
            _run("umount", self.path("root"))

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def file(self, name):
        """A file of the machine, as this one sees it."""
        return f"/proc/{self._init}/root{name}"

    def run(self, *command, patience_s=120):
        """Runs a command within: its exit code, and what it says."""
        done = subprocess.run(["nsenter", "-t", str(self._init), "--all", "env", "-i", "HOME=/root", "LC_ALL=C",
                               "DEBIAN_FRONTEND=noninteractive",
                               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=patience_s)
        return done.returncode, done.stdout.decode(errors="replace")

    def do(self, command, **more):
        """A line as it is typed: what it says. It must succeed."""
        code, said = self.run("sh", "-c", command, **more)
        assert code == 0, f"{command}: {code}\n{said[-3000:]}"
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def restart(self):
        """Shuts it down, and starts it again with the same files."""
        self.run("systemctl", "poweroff")  # which may end with the machine
        until(lambda: self._unshare.poll() is not None, "the machine is off", patience_s=90)
        self._off()
        until(lambda: _remove_cgroup(self._cgroup) or not os.path.exists(self._cgroup), "nothing runs", patience_s=30)
        self._boot()

    def _off(self):
        if self._unshare.poll() is None:
            self._unshare.send_signal(signal.SIGKILL)  # its child goes with it
        self._unshare.wait(PATIENCE_S)
        self._unshare.stdout.close()
        if self._init is not None:
            until(lambda: not os.path.exists(f"/proc/{self._init}/ns"), "the machine has ended", patience_s=30)
            self._init = None

    def end(self):
        """Ends all that runs within, and removes the layer."""
        self._off()
        for _ in range(50):
            shutil.rmtree(self.directory, ignore_errors=True)
            _remove_cgroup(self._cgroup)
            if not os.path.exists(self.directory) and not os.path.exists(self._cgroup):
                break
            time.sleep(0.1)
