"""Stands in for the package sounddevice on machines without sound. The microphone hears HEARD_WAV at its pace, then silence, and after some seconds somebody presses Ctrl+C.
The loudspeaker writes what it played to PLAYED_WAV."""
import os
import signal
import threading
import time
import wave
from array import array

LISTENS_SECONDS = 6


class Stream:
    def __init__(self, samplerate, blocksize, device, channels, dtype, callback):
        assert (device, channels, dtype) == (None, 1, "float32")
        self.rate, self.frames, self.callback = samplerate, blocksize or samplerate // 20, callback
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def close(self):
        self._ended.set()
        self._thread.join()

    def _run(self):
        due = time.monotonic()
        while True:
            due += self.frames / self.rate
            if self._ended.wait(max(0, due - time.monotonic())):
                return
            self.step()


class RawInputStream(Stream):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        with wave.open(os.environ["HEARD_WAV"]) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (self.rate, 1, 2)
            heard = array("f", (sample / 32768 for sample in array("h", file.readframes(file.getnframes()))))
        self._left = heard + array("f", bytes(4 * LISTENS_SECONDS * self.rate))
        self._interrupted = False

    def step(self):
        piece, self._left = self._left[: self.frames], self._left[self.frames :]
        if len(piece) == self.frames:
            self.callback(piece.tobytes(), self.frames, None, None)
        elif not self._interrupted:
            self._interrupted = True
            os.kill(os.getpid(), signal.SIGINT)


class RawOutputStream(Stream):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._played = array("f")

    def step(self):
        out = bytearray(4 * self.frames)
        self.callback(out, self.frames, None, None)
        self._played.frombytes(out)

    def close(self):
        super().close()
        with wave.open(os.environ["PLAYED_WAV"], "wb") as file:
            file.setparams((1, 2, self.rate, 0, "NONE", ""))
            file.writeframes(array("h", (round(32767 * max(-1, min(1, sample))) for sample in self._played)).tobytes())
