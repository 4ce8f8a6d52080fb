import{a as o,b as r}from"./chunk-S6V666D3.js";import"./chunk-FVSNIQFO.js";import"./chunk-6UBML4XB.js";export{r as NotificationFields,o as Notifications};
