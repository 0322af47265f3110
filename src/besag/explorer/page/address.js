// What is looked at, in the address: #view?name=value. The back button goes back, and a link shows what was seen.

export function read(views) {
  const [said, ...rest] = location.hash.slice(1).split("?");
  const name = Object.hasOwn(views, said) ? said : "sentence";
  const given = Object.fromEntries(new URLSearchParams(name === said ? rest.join("?") : ""));
  return { name, params: { ...views[name].defaults, ...given } };
}

// What is as usual is left out.
export function write(name, params, defaults) {
  const told = Object.entries(params).filter(([key, value]) => String(value) !== String(defaults[key] ?? ""));
  const query = new URLSearchParams(told).toString();
  return `#${name}${query && `?${query}`}`;
}
