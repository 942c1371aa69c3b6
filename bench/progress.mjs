// Shows the progress of a run and its estimated remaining time on one line of a terminal.
export class Progress {
  #total;
  #done = 0;
  #startedAt = Date.now();
  #isTerminal = process.stderr.isTTY === true;

  constructor(cells) {
    this.#total = cells.reduce((sum, cell) => sum + samplesOf(cell), 0);
  }

  step({ id }, name, round) {
    this.#done += 1;
    if (!this.#isTerminal) return;
    const share = (this.#done - 1) / this.#total;
    const left =
      share === 0 ? "" : `, about ${clock(((Date.now() - this.#startedAt) / share) * (1 - share))} left`;
    process.stderr.write(`\r\x1b[K${Math.floor(share * 100)} %${left}  ${id}  ${name}, round ${round}`);
  }

  print(lines) {
    if (this.#isTerminal) process.stderr.write("\r\x1b[K");
    for (const line of lines) console.log(line);
  }

  end() {
    if (this.#isTerminal) process.stderr.write("\r\x1b[K");
    console.log(`took ${clock(Date.now() - this.#startedAt)}`);
  }
}

const samplesOf = ({ contenders, repeat, isUncounted }) =>
  contenders.length * (repeat + (isUncounted === false ? 0 : 1));

const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;
