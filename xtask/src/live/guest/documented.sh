# Commands as the documents have them, typed by root, who needs no sudo.
printf '#!/bin/sh\nexec "$@"\n' >/bin/sudo
chmod +x /bin/sudo
ln -s /bin/robot-careless /bin/robot-good .
hold

# typed LABEL COMMAND: in a shell of its own, as a reader has it.
typed() {
    took $1 sh -c "$2"
}
