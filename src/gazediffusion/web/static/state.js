// What the page knows, in one place: values by name, and who wants to hear when one changes.

export function createStore(values) {
  const listeners = new Map();
  return {
    get: (name) => values[name],
    set(changes) {
      Object.assign(values, changes);
      const heard = new Set();
      for (const name of Object.keys(changes)) {
        for (const listener of listeners.get(name) || []) heard.add(listener);
      }
      for (const listener of heard) listener(values);
    },
    on(names, listener) {
      for (const name of [names].flat()) listeners.set(name, [...(listeners.get(name) || []), listener]);
    },
  };
}

export const store = createStore({
  server: null, // what /api/models says
  settings: null, // the form as it stands
  made: null, // the settings that the shown windows were made with, and what the server said of them
  windows: [], // generated windows, by index; holes are still to come
  selected: null, // index of the window in view
  real: null, // {summary, files}: the recording to compare with; files is null for --real
});

export function modelOf(name) {
  const { models } = store.get("server");
  return models.find((one) => one.name === name) || models[0];
}

// The screen a window of that task was recorded on, or would have been.
export function screenOf(model, task) {
  return (task && model.task_screens && model.task_screens[task]) || model.screen;
}
