"""Unix sockets: mode and group of their files, from the first moment, across a reload, an upgrade
and a restart.
"""

import grp
import os
import re
import stat
import threading

import pytest
from kit.harness import run_weir, wait_until
from kit.reloading import signal_reload
from kit.resp import Conn

OTHER = next((gid for gid in os.getgroups() if gid != os.getegid()), None)
if OTHER is None and os.geteuid() == 0:
    OTHER = next(group.gr_gid for group in grp.getgrall() if group.gr_gid != os.getegid())
needs_group = pytest.mark.skipif(OTHER is None, reason="the tests' user is in one group only")


def group_name():
    return grp.getgrgid(OTHER).gr_name


def rights(path):
    found = os.stat(path)
    assert stat.S_ISSOCK(found.st_mode)
    return stat.S_IMODE(found.st_mode), found.st_gid


def serves(path):
    with Conn(str(path)) as conn:
        return conn.call("PING") == "PONG"


@pytest.mark.parametrize("mode", ["0660", "0777", "600", "0606"])
def test_a_mode(mode, farm, redis):
    weir = farm.weir(redis, listen=f"unix:{{folder}}/a.sock mode {mode}, unix:{{folder}}/b.sock")
    assert rights(weir.folder / "a.sock")[0] == int(mode, 8)
    umask = os.umask(0)
    os.umask(umask)
    assert rights(weir.folder / "b.sock") == (0o777 & ~umask, os.getegid())
    assert serves(weir.folder / "a.sock") and serves(weir.folder / "b.sock")


@needs_group
@pytest.mark.parametrize("words", ["mode 0660 group {name}", "group {number} mode 0660", "GROUP {name} Mode 660 proxy"])
def test_a_mode_and_a_group(words, farm, redis):
    words = words.format(name=group_name(), number=OTHER)
    weir = farm.weir(redis, listen=f"unix:{{folder}}/a.sock {words}, 127.0.0.1:0", proxy_protocol_from="unix")
    assert rights(weir.folder / "a.sock") == (0o660, OTHER)
    assert f"listening on unix:{weir.folder}/a.sock" in weir.log()


@needs_group
def test_a_group_alone_has_the_mode_of_the_umask(farm, redis):
    weir = farm.weir(redis, listen=f"unix:{{folder}}/a.sock group {group_name()}", prefix=["sh", "-c", 'umask 027; exec "$@"', "-"])
    assert rights(weir.folder / "a.sock") == (0o750, OTHER)


def test_a_mode_is_what_it_says_whatever_the_umask(farm, redis):
    weir = farm.weir(redis, listen="unix:{folder}/a.sock mode 0666", prefix=["sh", "-c", 'umask 077; exec "$@"', "-"])
    assert rights(weir.folder / "a.sock")[0] == 0o666


@needs_group
def test_rights_stay_over_reload_upgrade_and_restart(farm, redis):
    weir = farm.weir(redis, listen=f"unix:{{folder}}/a.sock mode 0660 group {group_name()}", log_level="debug")
    path = weir.folder / "a.sock"
    assert signal_reload(weir)
    assert rights(path) == (0o660, OTHER)
    inode = os.stat(path).st_ino
    weir.upgrade()
    assert rights(path) == (0o660, OTHER) and os.stat(path).st_ino == inode and serves(path)
    weir.kill()
    assert path.exists(), "a stale file is left"
    weir.start()
    wait_until(lambda: weir.log().count("info  ready\n") == 3, "it is ready again")
    assert rights(path) == (0o660, OTHER) and serves(path)
    weir.stop()
    assert not path.exists()


def test_an_upgrade_brings_the_mode_of_the_new_file(farm, redis):
    weir = farm.weir(redis, listen="unix:{folder}/a.sock mode 0600")
    weir.config.write_text(weir.config.read_text().replace("mode 0600", "mode 0666"))
    assert signal_reload(weir)
    assert rights(weir.folder / "a.sock")[0] == 0o600, "needs a restart"
    assert re.search(r"listen.*restart|restart.*listen", weir.log())
    weir.upgrade()
    assert rights(weir.folder / "a.sock")[0] == 0o666 and serves(weir.folder / "a.sock")


def test_no_moment_with_more_rights(farm, redis, tmp_path):
    """The file has the owner's rights alone, then those that are configured."""
    path, seen, over = tmp_path / "a.sock", set(), threading.Event()

    def watch():
        while not over.is_set():
            try:
                seen.add(stat.S_IMODE(os.lstat(path).st_mode))
            except FileNotFoundError:
                pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(3):
            weir = farm.weir(redis, listen=f"unix:{path} mode 0640", prefix=["sh", "-c", 'umask 0; exec "$@"', "-"])
            weir.stop()
    finally:
        over.set()
        watcher.join()
    assert seen <= {0o600, 0o640} and 0o640 in seen


WRONG = {
    "unix:/tmp/x.sock mode": "the mode is missing",
    "unix:/tmp/x.sock mode rw": '"rw" is not a mode',
    "unix:/tmp/x.sock mode 888": '"888" is not a mode',
    "unix:/tmp/x.sock mode 4755": '"4755" is not a mode',
    "unix:/tmp/x.sock mode 66": '"66" is not a mode',
    "unix:/tmp/x.sock mode 0x1b0": '"0x1b0" is not a mode',
    "unix:/tmp/x.sock mode 0444": "gives no client write permission",
    "unix:/tmp/x.sock mode 0660 mode 0660": "mode is given twice",
    "unix:/tmp/x.sock mode=0666": "write mode 0666",
    "unix:/tmp/x.sock group=ops": "write group ops",
    "unix:/tmp/x.sock, mode 0666": "without a comma",
    "unix:/tmp/x.sock, mode=0666": "without a comma",
    "unix:/tmp/x.sock,mode=0666": "without a comma",
    "unix:/tmp/x.sock;mode=0666": "write mode and group after the path, with blanks",
    "unix:/tmp/x.sock?mode=0666": "write mode and group after the path, with blanks",
    "unix:/tmp/x.sock:mode=0666": "write mode and group after the path, with blanks",
    "unix:/tmp/x.sock:0666": "write mode and group after the path, with blanks",
    "unix:/tmp/x.sock group": "the name of the group is missing",
    "unix:/tmp/x.sock group no-such-group": "this machine has no group no-such-group",
    "unix:/tmp/x.sock group root group root": "group is given twice",
    "unix:/tmp/x.sock owner root": '"owner" is unknown after a path',
    "unix:/tmp/my socket": "a path cannot contain blanks",
    "unix:/tmp/my socket/x mode 0660": "a path cannot contain blanks",
    "127.0.0.1:6390 mode 0660": '"mode" is only for unix sockets',
    "tls:127.0.0.1:6390 group root": '"group" is only for unix sockets',
    "unix:/tmp/x.sock proxy proxy": '"proxy" is unknown after a path',
}


@pytest.mark.parametrize("listen", WRONG)
def test_mistakes_have_file_and_line(listen, tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text(f"[weir]\n; sockets\nlisten = {listen}\nproxy-protocol-from = unix\n")
    done = run_weir("-t", "-c", path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{path}:3: [weir] listen: ") and WRONG[listen] in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("value", ["/tmp/x.sock mode 0660", "/tmp/x.sock group root", "/tmp/my socket"])
def test_the_operators_socket_takes_no_words(value, tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text(f"[admin]\nsocket = {value}\n")
    done = run_weir("-t", "-c", path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{path}:2: [admin] socket: ") and "a path cannot contain blanks" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run weir as another user")
def test_a_group_that_the_user_may_not_give(farm, redis):
    weir = farm.weir(
        redis, wait=False, listen="unix:{folder}/a.sock mode 0660 group root",
        prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], log="stderr",
    )
    weir.kill()
    weir.folder.chmod(0o777)
    weir.config.chmod(0o644)
    weir.start()
    assert weir.wait() == 2
    assert "cannot listen on unix:" in weir.log() and "must be a member of the group" in weir.log()
    assert not (weir.folder / "a.sock").exists()


def test_the_dump_has_the_words(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nlisten = unix:/run/a.sock mode 0660 group root, 127.0.0.1:1\n")
    dumped = run_weir("-c", path, "--dump").stdout
    assert "listen = unix:/run/a.sock mode 0660 group root, 127.0.0.1:1\n" in dumped
    path.write_text(dumped)
    assert run_weir("-c", path, "--dump").stdout.split("\n", 2)[2] == dumped.split("\n", 2)[2]
