import { UsageError } from "./usage-error.ts";

type Values = Readonly<Record<string, unknown>>;

/** The names of the flags that were given; one with a default always is. */
export function givenOf<V extends Values>(
  values: V,
  names: readonly (keyof V & string)[],
): readonly string[] {
  return names.filter((name) => {
    const value: unknown = values[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  });
}

/** Refuses flags without effect, because the user meant something by them. Throws UsageError. */
export function refuseIgnored<V extends Values>(
  values: V,
  about: string,
  ignored: readonly (keyof V & string)[],
): void {
  const [first] = givenOf(values, ignored);
  if (first !== undefined)
    throw new UsageError(`--${first} says nothing about ${about}`, { showsUsage: true });
}
