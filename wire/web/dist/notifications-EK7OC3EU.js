import{a as o,b as r}from"./chunk-H3V3X3UW.js";import"./chunk-EIVIGQGC.js";import"./chunk-AOGBZIBD.js";import"./chunk-2KB6ARPR.js";export{r as NotificationFields,o as Notifications};
