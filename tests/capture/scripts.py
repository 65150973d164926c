"""Commands that destroy, move and twist a tree in every way that we know; each is a line for `bash -c` in its root."""

CORE: dict[str, str] = {
    "delete a tree": "rm -rf a docs",
    "delete everything": "rm -rf ./* .[a-z]*",
    "delete and make again": "rm -rf docs; mkdir docs; echo n > docs/1.md",
    "edit in place by sed": "sed -i s/two/three/ g docs/*.md",
    "edit in place by perl": "perl -pi -e 's/doc/DOC/' docs/*.md",
    "append through a link": "echo more >> l",
    "write through a dangling link": "echo made > dang",
    "truncate": "truncate -s 3 big; : > g; truncate -s 5M sparse",
    "write in the middle": "printf X | dd of=big bs=1 seek=100 conv=notrunc status=none",
    "move a directory": "mv docs papers; echo x >> papers/1.md",
    "move a directory into a new one": "mkdir n; mv docs n/docs; mv a n/docs/a",
    "move a directory over the name of another": "rm -rf docs; mv a docs; echo z > docs/b/deep",
    "make something in a directory that is elsewhere for a while": (
        "mv docs d; echo new > d/new; mkdir -p d/x/n; echo in > d/x/n/in; rm d/2.md; echo x >> d/1.md; mv d docs"
    ),
    "make something in a directory that is elsewhere twice": (
        "for i in 1 2 3; do mv docs d; echo new > d/n$i; echo x >> d/x/y; mkdir d/x/$i; mv d docs; echo z > docs/z$i; done"
    ),
    "make something in a directory that is outside for a while": (
        "mv docs ../d; echo new > ../d/new; rm -r ../d/x; echo x >> ../d/1.md; chmod 600 ../d/2.md; mv ../d docs"
    ),
    "exchange two directories twice": (
        "x() { python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'docs', -100, b'a', 2)\"; };"
        "x; echo new > a/new; echo new > docs/new; rm a/1.md; x"
    ),
    "move in a circle": "mv g t; mv crlf.txt g; mv t crlf.txt",
    "move over an existing file": "mv crlf.txt g",
    "exchange two files": "python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'g', -100, b'crlf.txt', 2)\"",
    "exchange two directories": "python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'docs', -100, b'a', 2)\"",
    "a file becomes a directory": "rm g; mkdir g; echo in > g/in",
    "a directory becomes a file": "rm -rf docs; echo file > docs",
    "a file becomes a link": "ln -sf docs/1.md crlf.txt",
    "a link becomes a file": "rm l; echo file > l",
    "a directory becomes a link": "mv docs elsewhere; ln -s elsewhere docs; echo x >> docs/2.md",
    "remove one name of two": "rm g2",
    "write to a file with two names": "echo more >> g2",
    "break a hard link": "cp g t; mv t g",
    "make hard links": "ln big big2; ln docs/1.md one; ln one two",
    "remove both names": "rm g g2",
    "rename one name of two and write": "mv g t; echo x >> t",
    "the alias pitfall": "rm big; ln docs/1.md keep; rm docs/1.md; echo x >> keep",
    "modes": "chmod 700 g docs; chmod -R u+x a; chmod 755 ro",
    "times": "touch -d 2001-01-01 g docs a/f; touch big",
    "attributes": "python3 -c \"import os; os.setxattr('g','user.k',b'w'); os.setxattr('docs','user.d',b'x'); os.removexattr('g','user.k')\"",
    "what came and went": "mkdir t; echo x > t/y; mv t/y t/z; rm -r t",
    "a pipe goes, another comes": "rm pipe; mkfifo other; chmod 600 other",
    "a pipe is used and goes": "(echo hi > pipe &); cat pipe > g; rm pipe",
    "a pipe is used": "(echo hi > pipe &); cat pipe > g",
    "odd names": "for f in n*m 'with space' nl*; do echo more >> \"$f\"; done; rm n*m",
    "a memory map": (
        "python3 -c \"import mmap; f=open('big','r+b'); m=mmap.mmap(f.fileno(),0); m[5:9]=b'abcd'; m.close()\""
    ),
    "names that begin at a directory": (
        "ln -s /x/y docs/abs; ln -s ../../x/made docs/x/up; "
        "python3 -c \"import ctypes, os, struct; d = os.open('docs', os.O_PATH);"
        "[os.write(ctypes.CDLL(None).syscall(437, d, name, struct.pack('QQQ', how, 0o600 if how & 64 else 0, 0x10), 24), b'in')"
        " for name, how in ((b'/2.md', 1), (b'abs', 513), (b'../3.md', 1025), (b'x/up', 65), (b'/../new', 65))]\""
    ),
    "threads": (
        'python3 -c "import threading,os;'
        "ts=[threading.Thread(target=lambda i=i: open(f'docs/{i}.md','a').write('x')) for i in (1,2,3,4)];"
        '[t.start() for t in ts]; [t.join() for t in ts]"'
    ),
    "git throws work away": "git reset -q --hard; git clean -qfdx",
    "git switches, commits and stashes": (
        "git add -A . 2>/dev/null; git commit -qm two; git checkout -q HEAD~1 2>/dev/null; git stash list >/dev/null; git gc -q"
    ),
    "an archive is unpacked over the tree": "tar cf ../t.tar docs g; echo x >> g; rm docs/1.md; tar xf ../t.tar; rm ../t.tar",
    "a nameless file gets a name": (
        "python3 -c \"import os; fd=os.open('.',os.O_TMPFILE|os.O_RDWR,0o644); os.write(fd,b'x');"
        "os.link(f'/proc/self/fd/{fd}','named',dst_dir_fd=os.open('.',0),follow_symlinks=True)\""
    ),
    "a descriptor of the shell": "exec 3>>g; echo three >&3; exec 3>&-; exec 4<>crlf.txt; printf Z >&4",
    "another directory": "cd docs/x; rm y; cd ..; rm -rf x; cd ../a; mv f ../docs/f",
    "exchange two directories and write": (
        "python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'docs', -100, b'a', 2)\";"
        "echo more >> a/1.md; echo new > docs/new; rm docs/f"
    ),
    "holes are filled": "cp --sparse=never sparse x; mv x sparse",
    "holes are dug": "fallocate -d zeros",
    "a process that fails half way": "rm a/f; false; echo x >> g; exit 7",
}
"""These run in every test run."""

LOCKED: dict[str, str] = {
    "a file that is not for reading gets another mode": "chmod 600 secret",
    "a file that is not for reading is moved": "mv secret aside; mv a elsewhere",
    "a file that is not for reading is written": "chmod 600 secret; echo more >> secret; chmod 200 secret",
    "a file that is not for reading goes": "rm -f secret",
    "files become unreadable": "chmod 0 crlf.txt big g; echo more >> docs/1.md; chmod 0 docs/1.md",
    "a new file is not for reading": "echo new > n; chmod 0 n; ln n n2",
    "a directory that cannot be listed is moved": "mv shut open; rm open/in",
    "a directory that cannot be entered is moved and opened": "chmod 0 docs; mv docs x; chmod 700 x; rm x/1.md",
    "a directory is shut": "echo more >> docs/1.md; rm docs/2.md; chmod 0 docs",
    "a directory is opened": "chmod 700 shut; echo new > shut/new; rm shut/in; chmod 500 shut",
    "a new directory is shut": "mkdir n; echo new > n/new; chmod 0 n",
}
"""What the owner of a file may do although its mode keeps the owner out: these matter to those without privileges."""

_OBJECTS = (
    "g",
    "big",
    "sparse",
    "ro",
    "empty",
    "a/f",
    "crlf.txt",
    "'with space'",
    "docs/1.md",
    "l",
    "dang",
    "pipe",
    "docs",
)
_DEEDS = {
    "rm -rf": "rm -rf {o}",
    "mv aside": "mv {o} aside",
    "mv into": "mv {o} docs/x/moved",
    "mv away": "mv {o} ../gone-$$; rm -rf ../gone-$$",
    "cp over": "[ -p {o} ] && new=--remove-destination; cp -f $new docs/2.md {o}",  # a pipe without a reader blocks
    "cp -a from": "cp -a {o} copy 2>/dev/null; rm -rf {o}; mv copy {o}",
    "append": "timeout 1 bash -c 'echo more >> {q}'",
    "truncate": "[ -p {o} ] || truncate -s 1 {o}",
    "chmod": "chmod 711 {o}",
    "touch": "touch -h -d 2002-02-02 {o}",
    "link": "ln {o} other 2>/dev/null; echo x >> docs/3.md",
    "symlink over": "rm -rf {o}; ln -s /etc/hosts {o}",
    "directory over": "rm -rf {o}; mkdir -p {o}/sub; echo s > {o}/sub/s",
    "replace": "rm -rf {o}; echo new > {o}",
    "sed -i": "[ -f {o} ] && sed -i 1s/^/x/ {o}",
    "mv and back": "mv {o} t; mv t {o}",
    "mv and write": "mv {o} t; [ -f t ] && echo x >> t; true",
    "python write": "[ -f {o} ] && python3 -c \"open({p!r}, 'w').write('w')\"",
    "twice": "rm -rf {o}; echo one > {o}; rm {o}; echo two > {o}",
    "swap with g2": "mv {o} t 2>/dev/null; mv g2 {o}; mv t g2",
}


def all_scripts() -> dict[str, str]:
    """Return the whole corpus: the core, and every deed done to every kind of object."""
    made = {
        f"{deed}: {one}": line.format(o=one, q=one.replace("'", ""), p=one.strip("'"))
        for deed, line in _DEEDS.items()
        for one in _OBJECTS
    }
    return CORE | LOCKED | made
