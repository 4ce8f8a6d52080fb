import{a as o,b as r}from"./chunk-OZ6CJX3E.js";import"./chunk-X23SFNAT.js";import"./chunk-VZOZZYE6.js";import"./chunk-4CJ3LAC6.js";export{r as NotificationFields,o as Notifications};
