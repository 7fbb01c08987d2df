"""`python -m handrail_tui` is `handrail`."""

import sys

from handrail_tui.main import main

sys.exit(main())
