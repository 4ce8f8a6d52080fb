"""Runs samba-tool without access lists of files, which not every file system has: python3 provision.py ARGUMENTS"""

import sys

import samba.provision
from samba.netcmd.main import cmd_sambatool

samba.provision.setsysvolacl = lambda *args, **named: None
samba.provision.checksysvolacl = lambda *args, **named: None
sys.exit(cmd_sambatool()._run("samba-tool", *sys.argv[1:]))
