// The state of the page: values by name, and listeners of their changes.

export function createStore(values) {
  const listeners = new Map();
  return {
    get: (name) => values[name],
    set(changes) {
      Object.assign(values, changes);
      const affected = new Set();
      for (const name of Object.keys(changes)) {
        for (const listener of listeners.get(name) || []) affected.add(listener);
      }
      for (const listener of affected) listener(values);
    },
    on(names, listener) {
      for (const name of [names].flat()) listeners.set(name, [...(listeners.get(name) || []), listener]);
    },
  };
}

export const store = createStore({
  server: null, // the response of /api/models
  settings: null, // the form
  generated: null, // the settings of the shown windows, and the last event of their stream
  windows: [], // generated windows by index; holes where they are not generated yet
  selected: null, // index of the window in view
  real: null, // {summary, files}: the recording to compare with; files is null for --real
});

export function modelOf(name) {
  const { models } = store.get("server");
  return models.find((one) => one.name === name) || models[0];
}

// The screens of windows that may be generated: of one task, or of all tasks of a mixture.
export function screensOf(model, task) {
  const screens = task ? [model.task_screens[task]] : Object.values(model.task_screens);
  return screens.filter(Boolean).length ? screens.filter(Boolean) : [model.screen];
}
