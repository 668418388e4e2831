# What 'a tensorboard' starts on this machine. It says "ready" when TensorBoard is there. Its words come by the input: other
# users can read those of a command line, and the path of the pages is their key. It ends with its input.
import json
import sys

NONE = 86  # as tensorboard.c knows it

sys.path = [path for path in sys.path if path]  # a folder of the project is not TensorBoard
try:
    from tensorboard import program
except ImportError as error:
    print("%s: %s" % (sys.executable, error), file=sys.stderr)
    sys.exit(NONE)
print("ready", flush=True)
words = sys.stdin.readline()
if not words:
    sys.exit()
board = program.TensorBoard()
board.configure(argv=["tensorboard"] + json.loads(words))
print(board.launch(), flush=True)
sys.stdin.read()
