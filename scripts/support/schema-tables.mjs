// Tables of the fields of a JSON Schema, for people.

const BEGIN = /<!-- fields of (\S+) -->\n/g;
const END = '<!-- end of fields -->';

/** The text with each table between its marks made anew. */
export function withTables(text, schema) {
  return text.replace(new RegExp(`${BEGIN.source}[\\s\\S]*?${END}`, 'g'), (_, section) => {
    const rows = fieldsOf(section === 'document' ? topOf(schema) : schema.properties[section]);
    const lines = rows.map(({ path, byDefault, meaning }) => {
      return `| \`${path}\` | ${byDefault} | ${meaning} |`;
    });
    const head = ['| field | default | meaning |', '| --- | --- | --- |'];
    return [`<!-- fields of ${section} -->`, '', ...head, ...lines, '', END].join('\n');
  });
}

/** The names of the tables in a text. */
export const tablesIn = (text) => [...text.matchAll(BEGIN)].map(([, section]) => section);

/** Only the names of the sections: each has a table of its own. */
function topOf({ properties }) {
  const entries = Object.entries(properties).filter(([name]) => name !== '$schema');
  return {
    properties: Object.fromEntries(
      entries.map(([name, { description, default: byDefault }]) => {
        return [name, { description, default: byDefault }];
      }),
    ),
  };
}

function fieldsOf(schema, prefix = '') {
  const forms = [schema, ...(schema.anyOf ?? [])];
  return forms.flatMap(({ properties = {}, additionalProperties }) => {
    const named = additionalProperties ? fieldsOf(additionalProperties, `${prefix}<name>.`) : [];
    const own = Object.entries(properties).flatMap(([name, field]) => [
      {
        path: prefix + name,
        byDefault: field.default === undefined ? '' : `\`${literal(field.default)}\``,
        meaning: field.description ?? '',
      },
      // What was told above need not be told again.
      ...(field.description?.startsWith('As above') ? [] : fieldsOf(field, `${prefix}${name}.`)),
    ]);
    return [...own, ...named];
  });
}

function literal(value) {
  if (typeof value === 'number')
    return String(Number(value.toPrecision(3)) === value ? value : round(value));
  return JSON.stringify(value).replaceAll('"', "'").replaceAll(',', ', ').replaceAll(':', ': ');
}

const round = (value) => (Number.isInteger(value) ? value : value.toFixed(2));
