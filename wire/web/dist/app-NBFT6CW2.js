import{Q as r}from"./chunk-NKAQZK55.js";r();
