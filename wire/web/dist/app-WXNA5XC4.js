import{Q as r}from"./chunk-YTH3MJ32.js";r();
