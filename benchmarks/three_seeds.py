"""Three seeds of 325 judged items with given wins and losses, as a table for `deadheat verdict` to read.

    python benchmarks/three_seeds.py > three.csv

The tallies (185–57, 106–109, 202–41) are those of a real comparison whose items are not public; where on the 325 items
they fall is drawn here, the same under every run.
"""

import numpy as np

rng = np.random.Generator(np.random.Philox(key=1))
print("arm,seed,item,score")
for seed, (won, lost) in enumerate(((185, 57), (106, 109), (202, 41)), start=1):
    votes = rng.permutation([1] * won + [-1] * lost + [0] * (325 - won - lost))
    for item, vote in enumerate(votes):
        print(f"a,{seed},q{item},{int(vote > 0)}\nb,{seed},q{item},{int(vote < 0)}")
