import{a as o,b as r}from"./chunk-HLSBWAP4.js";import"./chunk-7JPOLBY6.js";import"./chunk-BQJJFHAK.js";export{r as NotificationFields,o as Notifications};
