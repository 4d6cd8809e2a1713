"""Pictures for training the LLM: what a picture shows, and its rows. The tower is trained separately (`train_tower`) to reproduce the LLM's frozen
input embeddings of a few words."""
import torch
from . import sights
from .run import work

BLUR, SLIPS = .5, .03  # for rows not made by the tower: noise relative to the deviation of the embeddings, and the share of wrong words


class Words:
    """The ideal rows, blurred: for training before the tower exists."""

    def __init__(self, text, table):
        self.tokens, self.blank, self.table = sights.word_tokens(text), text.id["<|audio|>"], table.detach().clone()

    def pick(self, r, asked=None):
        """(a sight that fits the question, rows [ROWS,H])."""
        sight = sights.random_sight(r, asked=asked, other=True)
        named = [i if r.random() > SLIPS else r.choice([self.blank, *self.tokens.values()]) for i in sights.fields(sight, self.tokens, self.blank)]
        rows = self.table[torch.tensor(named)]
        return sight, rows + torch.randn_like(rows) * self.table.std() * BLUR * r.random()


class Gallery:
    """Rows that the tower computed for drawn pictures (`gallery.pt`)."""

    def __init__(self, path):
        state = torch.load(path, map_location="cpu")
        self.sights, self.rows = [sights.Sight(*s) for s in state["sights"]], state["rows"]

    def pick(self, r, asked=None):
        while True:
            i = r.randrange(len(self.sights))
            if asked is None or sights.fits(asked, self.sights[i]) and (asked.kind not in ("is_colour", "is_shape") or r.random() < self._liking(asked, self.sights[i])):
                return self.sights[i], self.rows[i].float()

    @staticmethod
    def _liking(asked, sight):
        """The probability of accepting this sight, chosen so that "yes" is about as frequent as "no"."""
        return 1 if (asked.colour if asked.kind == "is_colour" else asked.shape) == (sight.colour if asked.kind == "is_colour" else sight.shape) else .12


def open_gallery(text, table):
    """The tower's rows if they exist, otherwise words."""
    path = work() / "gallery.pt"
    return Gallery(path) if path.exists() else Words(text, table)
