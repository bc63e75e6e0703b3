"""Names and numbers for operands, partitioned so that two splits never share one."""

from dataclasses import dataclass
from random import Random

from schemas.lineage import Split

_WORDS = """
acorn alder amber anchor anvil apple arrow aspen atlas badge baker balsam banjo barley basil
basin beacon beech birch bison blossom bonnet border bottle branch bridge bronze brook bucket
buckle butter cabin cactus candle canoe canvas canyon carbon cargo carpet castle cedar cellar
cherry chisel cider cinder citrus clover coast cobalt comet copper coral corner cotton cradle
crane crater creek cricket crystal curlew cypress dahlia daisy dapple delta denim desert dipper
dolphin dragon drum dune eagle ember engine falcon feather fennel fern fiddle field finch flint
forest fossil fountain fox garden garnet gate geyser ginger glacier glade goblet granite grape
gravel grove gull hammer harbor harvest hazel heron hickory hinge hollow honey horizon iris island
ivory ivy jacket jasmine jasper jetty juniper kernel kettle kite ladder lagoon lantern larch laurel
lava ledge lemon lilac linen lizard lotus lumber magnet mallard mango maple marble marsh meadow
melon mercury meteor mint mirror mitten moss myrtle nectar needle nickel nutmeg oak oasis olive
onyx opal orbit orchard orchid osprey otter oyster paddle panther parcel parsley pebble pepper
petal pewter pigeon pillar pine piston planet plume pocket pollen poplar poppy prairie quail quarry
quartz quill rabbit raven reef ribbon ridge river robin rocket rose rudder saddle saffron sage
salmon sandal sapphire saturn shelf shore silver slate sorrel spade sparrow spruce squash stable
starling stone stork summit sunset swallow sycamore tackle tangle teal temple thicket thistle
thunder timber tulip tundra turnip turtle valley velvet violet walnut wharf wheat willow window
winter yarrow yonder zenith zephyr zinc
""".split()  # noqa: SIM905 - a list of 251 quoted words is no easier to read
_ORDER = tuple(Split)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The operands that one split may use."""

    split: Split
    thing: str = ""
    """A business object to word goals for, in the singular; empty: the family's own."""

    def words(self, rng: Random, count: int) -> list[str]:
        """Return `count` different words of this split."""
        return rng.sample(_WORDS[_ORDER.index(self.split) :: len(_ORDER)], count)

    def number(self, rng: Random, low: int, high: int) -> int:
        """Return a number of this split in [low, high], which must span at least three."""
        numbers = [n for n in range(low, high + 1) if n % len(_ORDER) == _ORDER.index(self.split)]
        return rng.choice(numbers)
