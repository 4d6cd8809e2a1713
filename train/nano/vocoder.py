"""The original HiFT vocoder (docs/model/talker.md 8, 9) with the names of hift.pt, for training on segments: mel frames at 50 Hz -> samples at 24 kHz.

Its source is a sum of harmonics whose pitch may glide. The causal vocoder's is held for a whole frame, so pulses could only lie where the frame's mel tells."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

BASE, PITCH_WIDTH = 64, 64
UPS = ((8, 16), (5, 11), (3, 7))  # (upsampling factor, kernel)
HARMONICS, HOP = 9, 480
FADED = 8    # frames that two chunks of a stream share
VOICED = 10  # Hz; above this a frame is voiced


def source_phase(pitch):
    """pitch [...,T] Hz -> the source's phase in the middle of each frame, in cycles from the first frame on (`psola.cycles`), double."""
    return (pitch.double() * (HOP / 24000)).cumsum(-1)


def centred(i, o, kernel, dilation=1):
    """A convolution that sees as much of the future as of the past."""
    return nn.Conv1d(i, o, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2)


class Snake(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(c))

    def forward(self, x):
        a = self.alpha[:, None]
        return x + (x * a).sin().pow(2) / (a + 1e-9)


class ResBlock(nn.Module):
    def __init__(self, c, kernel):
        super().__init__()
        self.convs1 = nn.ModuleList(centred(c, c, kernel, d) for d in (1, 3, 5))
        self.convs2 = nn.ModuleList(centred(c, c, kernel) for _ in range(3))
        self.activations1, self.activations2 = (nn.ModuleList(Snake(c) for _ in range(3)) for _ in range(2))
        for conv in [*self.convs1, *self.convs2]:
            nn.init.normal_(conv.weight, 0, .5 / math.sqrt(c * kernel))
            nn.init.zeros_(conv.bias)

    def forward(self, x):
        for k in range(3):
            x = x + self.convs2[k](self.activations2[k](self.convs1[k](self.activations1[k](x))))
        return x


class PitchPredictor(nn.Module):
    """mel [B,80,T] -> pitch [B,T] in Hz."""

    def __init__(self):
        super().__init__()
        self.condnet = nn.ModuleDict({str(2 * k): centred(PITCH_WIDTH if k else 80, PITCH_WIDTH, 3) for k in range(5)})
        self.classifier = nn.Linear(PITCH_WIDTH, 1)

    def forward(self, mel):
        for conv in self.condnet.values():
            mel = F.elu(conv(mel))
        return self.classifier(mel.transpose(1, 2))[..., 0].abs()


class Vocoder(nn.Module):
    def __init__(self, base=BASE):
        super().__init__()
        self.conv_pre, self.f0_predictor = centred(80, base, 7), PitchPredictor()
        self.m_source = nn.ModuleDict(dict(l_linear=nn.Linear(HARMONICS, 1)))
        c = [base // 2 ** k for k in range(4)]
        self.ups = nn.ModuleList(nn.ConvTranspose1d(c[k], c[k + 1], kernel, times, (kernel - times) // 2) for k, (times, kernel) in enumerate(UPS))
        self.source_downs = nn.ModuleList(nn.Conv1d(18, c[k + 1], 2 * s if s > 1 else 1, s, s // 2) for k, s in enumerate((15, 3, 1)))
        self.source_resblocks = nn.ModuleList(ResBlock(c[k + 1], kernel) for k, kernel in enumerate((7, 7, 11)))
        self.resblocks = nn.ModuleList(ResBlock(c[k + 1], kernel) for k in range(3) for kernel in (3, 7, 11))
        self.conv_post = centred(c[3], 18, 7)
        for conv in (self.conv_pre, *self.ups, *self.source_downs, self.conv_post, *self.f0_predictor.condnet.values()):
            seen = conv.in_channels * conv.kernel_size[0] / (conv.stride[0] if isinstance(conv, nn.ConvTranspose1d) else 1)
            nn.init.normal_(conv.weight, 0, seen ** -.5)
            nn.init.zeros_(conv.bias)
        nn.init.ones_(self.m_source["l_linear"].weight)
        self.conv_post.weight.data.mul_(.3)
        self.conv_post.bias.data[:9] = -3.5
        self.register_buffer("window", torch.hann_window(16), persistent=False)

    def standardise(self, mean, deviation):
        """Scales the mel inside the first layers, so that they work on raw values."""
        with torch.no_grad():
            for conv in (self.conv_pre, self.f0_predictor.condnet["0"]):
                conv.weight.div_(deviation[None, :, None])
                conv.bias.sub_((conv.weight * mean[None, :, None]).sum((1, 2)))
            self.f0_predictor.classifier.weight.mul_(40)
            self.f0_predictor.classifier.bias.fill_(100.)

    def source(self, pitch, cycles=None):
        """pitch [B,T] Hz -> excitation [B,1,T*480]: the harmonics of the pitch, in phase. cycles [B,T], double: its `source_phase`, if the first
        frame is not the first one of a sentence."""
        B, T = pitch.shape
        cycles = source_phase(pitch) if cycles is None else cycles
        cycles = F.interpolate(cycles[:, None], scale_factor=HOP, mode="linear")[:, 0]
        sine = (cycles[..., None] * torch.arange(1, HARMONICS + 1)).remainder(1).mul(2 * math.pi).float().sin()
        voiced = (pitch > VOICED).float().repeat_interleave(HOP, 1)[..., None]
        wave = .1 * sine * voiced + torch.randn(B, T * HOP, HARMONICS) * (.003 * voiced + (1 - voiced) * .1 / 3)
        return self.m_source["l_linear"](wave).tanh().transpose(1, 2)

    def decode(self, mel, source):
        """mel [B,80,T], source [B,1,T*480] -> samples [B,T*480]."""
        s = torch.stft(source[:, 0], 16, 4, window=self.window, return_complex=True)
        s, x = torch.cat([s.real, s.imag], 1), self.conv_pre(mel)
        for k in range(len(UPS)):
            x = self.ups[k](F.leaky_relu(x, .1))
            if k == 2:
                x = torch.cat([x[:, :, 1:2], x], 2)
            x = x + self.source_resblocks[k](self.source_downs[k](s))
            x = sum(block(x) for block in self.resblocks[3 * k:3 * k + 3]) / 3
        x = self.conv_post(F.leaky_relu(x))
        size, phase = x[:, :9].clamp(max=4.6).exp(), x[:, 9:].sin()
        return torch.istft(torch.complex(size * phase.cos(), size * phase.sin()), 16, 4, window=self.window)

    def forward(self, mel):
        return self.decode(mel, self.source(self.f0_predictor(mel))).clamp(-.99, .99)

    @torch.no_grad()
    def streamed(self, mel, chunk=50):
        """mel [1,80,T] -> samples [1,T*480], in chunks of frames as the server makes them: the last eight frames are said again with the next chunk, and faded over."""
        out, overlap = [], FADED * HOP
        window = torch.hamming_window(2 * overlap, periodic=False)
        past = None  # source and samples of the last frames
        for at in range(0, mel.shape[2], chunk):
            joined = mel[:, :, max(0, at - FADED):at + chunk]
            wave = self.source(self.f0_predictor(joined))
            if past:
                wave[..., :overlap] = past[0]
            y = self.decode(joined, wave).clamp(-.99, .99)
            if past:
                y[:, :overlap] = y[:, :overlap] * window[:overlap] + past[1] * window[overlap:]
            past = wave[..., -overlap:], y[:, -overlap:]
            out.append(y if at + chunk >= mel.shape[2] else y[:, :-overlap])
        return torch.cat(out, 1)

    def state(self):
        """Tensors of hift.pt: convolutions as direction and length, except for the few that are plain there."""
        out = {}
        for name, value in self.state_dict().items():
            stem = name.removesuffix(".weight")
            if stem != name and value.dim() == 3 and not name.startswith("source_downs"):
                out[stem + ".parametrizations.weight.original0"] = value.flatten(1).norm(dim=1).view(-1, 1, 1)
                out[stem + ".parametrizations.weight.original1"] = value
            else:
                out[name] = value
        return out
