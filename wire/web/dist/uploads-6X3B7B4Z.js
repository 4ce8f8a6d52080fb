import{a as o,b as r}from"./chunk-4B65PQMZ.js";import"./chunk-T7Y2HL3W.js";import"./chunk-RE2MJ6K2.js";import"./chunk-YGW5J2DS.js";import"./chunk-BN2J5NV2.js";export{r as Uploads,o as fileSize};
