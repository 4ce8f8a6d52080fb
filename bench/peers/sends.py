"""Sends of locust (locust -f sends.py): the same as sends.toml.

PEERS is a JSON object with url, rate, seconds, channel and accounts, which are pairs of an address and an API key.
"""

import json
import os
import random
import time

from locust import FastHttpUser, constant_throughput, events, task

PEERS = json.loads(os.environ["PEERS"])
USERS = 20  # each sends rate / USERS messages a second


class Sender(FastHttpUser):
    host = PEERS["url"]
    wait_time = constant_throughput(PEERS["rate"] / USERS)

    @task
    def send(self):
        self.client.post(
            "/api/v1/messages",
            data={
                "type": "channel",
                "to": PEERS["channel"],
                "topic": "peers",
                "content": f"locust {time.time_ns()} {random.random()}",
            },
            auth=tuple(random.choice(PEERS["accounts"])),
        )


@events.quitting.add_listener
def report(environment, **_):
    total = environment.stats.total
    result = {
        "count": total.num_requests,
        "failed": total.num_failures,
        "mean": total.avg_response_time,
        "p50": total.get_response_time_percentile(0.5),
        "p99": total.get_response_time_percentile(0.99),
    }
    print(json.dumps(result))
