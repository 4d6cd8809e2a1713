"""One fair queue: 200 sessions for 4 slots, in order, each told its position; leaving at any point leaks nothing."""
import asyncio
import json
import random

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from realtime import Client, http

SLOTS, SESSIONS = 4, 200


async def wait_in_line(server, order: list[int], number: int, leave_after: int | None) -> list[int]:
    """Connects, reads queue events until served (or leaves), records the order of service. Returns its positions."""
    positions = []
    async with connect(server.realtime + "?mode=audio", open_timeout=60, close_timeout=5) as socket:
        connected[number].set()
        async for text in socket:
            event = json.loads(text)
            if event["type"] in ("session.queued", "session.queue_update"):
                positions.append(event["position"])
                assert event["queue_length"] >= event["position"] >= 1 and event["estimated_wait_s"] >= 0
                if leave_after is not None and len(positions) > leave_after:
                    socket.transport.abort()
                    return positions
            elif event["type"] == "session.queue_done":
                order.append(number)
                if leave_after is not None:
                    socket.transport.abort()
                    return positions
                await socket.send('{"type":"session.close","reason":"user_stop"}')
            elif event["type"] == "session.closed":
                return positions
    return positions


connected: list[asyncio.Event] = []


async def run_line(server) -> tuple[list[int], list[list[int]], list[int | None]]:
    global connected
    connected = [asyncio.Event() for _ in range(SESSIONS)]
    rng = random.Random(1)
    leaving = [rng.choice([None, 0, 1, 2]) for _ in range(SESSIONS)]
    order: list[int] = []
    holders = [await connect(server.realtime + "?mode=audio", open_timeout=60) for _ in range(SLOTS)]
    for holder in holders:
        assert json.loads(await holder.recv())["type"] == "session.queue_done"
    tasks = []
    for number in range(SESSIONS):  # one after the other, so that the order of arrival is known
        tasks.append(asyncio.create_task(wait_in_line(server, order, number, leaving[number])))
        await asyncio.wait_for(connected[number].wait(), 60)
    for holder in holders:
        await holder.close()
    positions = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 240)
    return order, positions, leaving


def test_two_hundred_sessions_for_four_slots(start_server):
    server = start_server("--set", f"worker.max_sessions={SLOTS}")
    order, positions, leaving = asyncio.run(run_line(server))
    failures = [p for p in positions if isinstance(p, BaseException) and not isinstance(p, ConnectionClosed)]
    assert not failures, failures[:3]
    staying = [n for n in range(SESSIONS) if leaving[n] is None]
    served = [n for n in order if leaving[n] is None]
    assert sorted(served) == staying, "everybody who stayed was served"
    # Four slots are freed independently, so clients may overtake each other on their sockets, but by fewer places than
    # there are slots.
    assert all(abs(served.index(n) - i) < SLOTS for i, n in enumerate(staying))
    for n in staying:
        assert positions[n] and positions[n] == sorted(positions[n], reverse=True), "positions only ever fall"
    status = http(server, "/status")[1]
    assert status["queue"]["length"] == 0
    all_free(server)


def all_free(server):
    """All slots are free: that many sessions start at once, and none is queued."""
    clients = [Client(server) for _ in range(SLOTS)]
    for client in clients:
        assert client.receive()["type"] == "session.queue_done"
    for client in clients:
        client.say_goodbye()


def test_no_queue(start_server):
    server = start_server("--set", "worker.max_sessions=1", "--set", "queue.capacity=0")
    with Client(server) as first, Client(server) as second:
        first.init()
        assert second.until_error()["code"] == "worker_busy"
        assert second.closed() == 1013


def test_a_full_queue(start_server):
    server = start_server("--set", "worker.max_sessions=1", "--set", "queue.capacity=1")
    with Client(server) as first, Client(server) as second:
        first.init()
        place = second.receive()
        assert place["type"] == "session.queued" and place["position"] == 1 and place["ticket_id"].startswith("ticket_")
        with Client(server) as third:
            assert third.until_error()["code"] == "queue_full"
            assert third.closed() == 1013
        first.say_goodbye()
        second.until("session.queue_done")


def test_leaving_the_queue_by_session_close(start_server):
    server = start_server("--set", "worker.max_sessions=1")
    with Client(server) as first, Client(server) as second:
        first.init()
        second.receive()
        closed, code = second.say_goodbye()
        assert code == 1000 and closed["reason"] == "user_stop"
