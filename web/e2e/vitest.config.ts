import { defineConfig } from 'vitest/config';

// Two files run at once, each with its own browser, for which they mostly wait.
export default defineConfig({
  test: {
    include: ['e2e/**/*.e2e.ts'],
    environment: 'node',
    globalSetup: 'e2e/scratch.ts',
    maxWorkers: 2,
    // So long that only a hanging browser exceeds it.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // As for the other tests: a test that passes on the second try is listed as retried.
    retry: 1,
  },
});
