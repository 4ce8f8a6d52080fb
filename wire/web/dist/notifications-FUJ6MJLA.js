import{a as o,b as r}from"./chunk-YWQUM7P6.js";import"./chunk-PVDCEZG6.js";import"./chunk-4B2Q4GWJ.js";import"./chunk-JM4NAU6W.js";export{r as NotificationFields,o as Notifications};
