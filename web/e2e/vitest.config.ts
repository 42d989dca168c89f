import { defineConfig } from 'vitest/config';

// Two files at once, each with a browser of its own: they mostly wait for it.
export default defineConfig({
  test: {
    include: ['e2e/**/*.e2e.ts'],
    environment: 'node',
    globalSetup: 'e2e/scratch.ts',
    maxWorkers: 2,
    // Only a hanging browser ends a test.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // As of the other tests: one that passes then is listed as retried.
    retry: 1,
  },
});
