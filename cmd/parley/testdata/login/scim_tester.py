# Runs the checks of scim2-tester against a server: scim_tester.py URL TOKEN. It prints a line for each check.
import sys

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

http = httpx2.Client(base_url=sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]}, timeout=30)
for x in check_server(SyncSCIMClient(http)):
    print(x.status.name, x.title, x.resource_type or "-", str(x.reason).replace("\n", " "), str(x.data)[:400].replace("\n", " "))
