import{a as o}from"./chunk-JZ6ZNL7Q.js";import"./chunk-KSSYTXTL.js";import"./chunk-SFYOWIYE.js";import"./chunk-VLV6FW3N.js";export{o as Privacy};
