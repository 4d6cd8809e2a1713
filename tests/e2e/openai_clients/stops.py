"""Where the programs beside this file wait until something has happened to the server."""
import asyncio
import sys


async def stop():
    print("stop", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
